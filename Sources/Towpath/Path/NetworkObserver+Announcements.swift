internal import TowpathReactor
internal import TowpathWire

/// What the kernel announces, and what is done when some of it was lost.
extension NetworkObserver {
    func handle(_ ready: ReadyEvents) {
        if state.withLock({ $0.isResynchronizing }) { return }
        drain()
    }

    /// So many announcements are read in one turn of the loop; then others go first.
    private static let turnLimit = 256

    /// What was read.
    private struct Reading {
        var events: [NetworkEvent] = []
        /// Anything may be different.
        var isChanged = false
        /// Something was lost.
        var isLost = false
    }

    func drain() {
        let reading = state.withLock { read(&$0) }
        post(reading.events)
        if reading.isLost { return resynchronize(because: "the receive buffer was full") }
        if reading.isChanged { changed() }
    }

    private func read(_ state: inout State) -> Reading {
        var reading = Reading()
        for _ in 0..<Self.turnLimit {
            switch state.events.receive(into: &state.buffer) {
            case .done(let count):
                apply(&state, count, &reading)
            case .wouldBlock: return reading
            // ENOBUFS comes in front of what could be kept; that is read, and then all is listed anew.
            case .failed: reading.isLost = true
            }
        }
        // The rest in the next turn, or once all is listed anew.
        if !reading.isLost, !state.isDrainScheduled {
            state.isDrainScheduled = true
            _ = loop.schedule(at: MonotonicClock.now, self, tag: Self.drainTag)
        }
        return reading
    }

    /// Applies one datagram. If it makes no sense, something is lost.
    private func apply(_ state: inout State, _ count: Int, _ reading: inout Reading) {
        var messages = NetlinkMessages(state.buffer[..<count])
        do throws(NetlinkError) {
            while let message = try messages.next() {
                let announcement = try RouteNetlink(message)
                // Of many neighbours few are gateways.
                guard state.isNews(announcement) else { continue }
                reading.isChanged = true
                if case .rule = announcement { state.rulesChanged = true }
                if case .newRoute(let route, _) = announcement {
                    state.newRouteCount += 1
                    if let family = route.family {
                        state.lists.missingTables[family]?.remove(route.table)
                    }
                }
                guard let change = state.lists.table.apply(announcement) else { continue }
                if !state.listeners.isEmpty {
                    reading.events += NetworkEvent.events(announcement, change, state.lists.table)
                }
            }
        } catch {
            reading.isLost = true
        }
    }

    /// Something may be different: publishes once it is quiet.
    func changed() {
        let now = MonotonicClock.now
        let quiet = MonotonicClock.nanoseconds(in: min(options.coalescing, .seconds(3_600)))
        guard quiet > 0 else { return evaluateAll() }
        state.withLock { state in
            guard !state.isClosed else { return }
            let since = state.changedSince ?? now
            state.changedSince = since
            if let timer = state.timer { loop.cancel(timer) }
            let deadline = min(now + quiet, since + 5 * quiet)
            state.timer = loop.schedule(at: deadline, self, tag: Self.coalesceTag)
        }
    }

    func deadlineReached(_ tag: UInt8) {
        switch tag {
        case Self.coalesceTag:
            state.withLock { state in
                state.timer = nil
                state.changedSince = nil
            }
            evaluateAll()
        case Self.expiryTag:
            let isDoubtful = state.withLock { state in
                state.expiryTimer = nil
                return state.lists.isDoubtful
            }
            if isDoubtful { resynchronize(because: nil) } else { evaluateAll() }
        case Self.drainTag:
            state.withLock { $0.isDrainScheduled = false }
            handle([.input])
        case Self.resyncTag:
            let cause = state.withLock { state in
                state.resyncTimer = nil
                return state.resyncCause
            }
            listAnew(because: cause)
        default: poll()
        }
    }

    func nameServersChanged() {
        post([NetworkEvent(.dns, cause: "name servers changed")])
        changed()
    }

    // MARK: Losses

    /// Lists everything anew, on a thread that may wait.
    func resynchronize(because loss: String?) {
        let now = MonotonicClock.now
        let pause = state.withLock { state -> UInt64? in
            guard !state.isResynchronizing, !state.isClosed else { return nil }
            state.isResynchronizing = true
            // From one to the next, twice as long each time while a storm goes on: 100 ms to 10 s.
            let since = now - state.lastResync
            let isStorm = since < 2 * max(state.resyncPause, 100_000_000)
            state.resyncPause =
                isStorm ? min(max(state.resyncPause * 2, 100_000_000), 10_000_000_000) : 0
            return state.resyncPause > since ? state.resyncPause - since : 0
        }
        guard let pause else { return }
        guard pause > 0 else { return listAnew(because: loss) }
        state.withLock { state in
            guard !state.isClosed else { return }
            state.resyncCause = loss
            state.resyncTimer = loop.schedule(at: now + pause, self, tag: Self.resyncTag)
        }
    }

    private func listAnew(because loss: String?) {
        guard let client else { return }
        do throws(SystemError) {
            try BlockingPool.network.submit { [self] in
                adopt(try? NetworkLists(from: client, mayPause: true), because: loss)
            }
        } catch {
            state.withLock { $0.isResynchronizing = false }
        }
    }

    func adopt(_ lists: NetworkLists?, because loss: String?) {
        var changes = 0
        state.withLock { state in
            state.isResynchronizing = false
            state.lastResync = MonotonicClock.now
            guard let lists else {
                // Tried again with the next evaluation's timer.
                state.lists.isDoubtful = true
                return
            }
            changes = state.lists.table.differences(from: lists.table)
            state.lists = lists
        }
        if let loss {
            post([
                NetworkEvent(.gap, cause: "\(loss); resynchronised: \(changes) changes")
            ])
        }
        // What came meanwhile still lies in the socket, and no edge tells of it again.
        drain()
        evaluateAll()
    }
}

extension Optional where Wrapped == Descriptor, Wrapped: ~Copyable {
    fileprivate borrowing func receive(into buffer: inout [UInt8]) -> Transfer {
        switch self {
        case .some(let socket): socket.receiveNetlink(into: &buffer)
        case .none: .wouldBlock
        }
    }
}
