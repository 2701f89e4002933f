internal import TowpathReactor
internal import TowpathTLS
internal import TowpathWire

/// From setup to ready.
extension ConnectionCore {
    /// Begins to open the connection, if nobody has.
    func start() {
        let (begins, wakeups) = state.withLock { state in
            var wakeups = Wakeups()
            guard state.phase == .setup else { return (false, wakeups) }
            state.phase = .preparing
            state.rare?.broadcast?.post(.preparing)
            wakeups.broadcast = state.rare?.broadcast
            return (true, wakeups)
        }
        guard begins, let plan else { return }
        // A task of its own: the attempt outlives a first use that is cancelled.
        let task = Task(executorPreference: loop) { await self.establish(plan) }
        let isWanted = state.withLock { state in
            guard state.phase == .preparing || state.phase.isNegotiating else {
                return state.phase == .ready
            }
            state.orMakeRare.establishing = task
            return true
        }
        if !isWanted { task.cancel() }
        wake(wakeups)
    }

    /// Waits until the connection is open, and opens it if need be.
    func open(until deadline: UInt64, _ stage: NetworkError.Stage) async throws {
        if Task.isCancelled { throw CancellationError() }
        start()
        let waiter = Waiter()
        let error = state.withLock { state -> NetworkError?? in
            switch state.phase {
            case .ready, .closing: return .some(nil)
            case .failed, .closed: return state.failure ?? .closed(stage)
            case .setup, .preparing, .securing, .upgrading:
                state.orMakeRare.readyWaiters.append(waiter)
                return nil
            }
        }
        if let error {
            if let error { throw error }
            return
        }
        switch await waiter.wait(on: loop, until: deadline) {
        case .ready: break
        case .cancelled: throw CancellationError()
        case .timedOut: throw NetworkError.timedOut(stage, "the connection is not open yet")
        }
        let failure = state.withLock { state in
            state.isOpen ? nil : state.failure ?? .closed(stage)
        }
        if let failure { throw failure }
    }

    private func establish(_ plan: ConnectionPlan) async {
        let start = MonotonicClock.now
        let deadline = MonotonicClock.deadline(after: plan.connectionTimeout)
        let path = ConnectionPath(plan, on: loop, until: deadline)
        // A path that has just come may go and come once more between two looks.
        var mayRetry = false
        while true {
            var establishment = Establishment(plan: plan, loop: loop, start: start)
            do throws(NetworkError) {
                let chosen = try await path.chosen()
                guard plan.tls != nil || plan.webSocket != nil else {
                    let socket = try await establishment.run(chosen)
                    return wake(adopt(socket, establishment.report))
                }
                var context: TLSContext?
                if let tls = plan.tls {
                    context = try await self.context(of: tls, isServer: false, until: deadline)
                }
                let socket = try await establishment.run(chosen)
                try beginNegotiating(socket, plan, context)
                if let tls = plan.tls {
                    try await secure(with: tls.hooks, until: deadline)
                    establishment.noteHandshake()
                }
                if let webSocket = plan.webSocket {
                    try beginUpgrading()
                    try await upgrade(to: webSocket, plan, until: deadline)
                }
                return wake(endSecuring(establishment.report))
            } catch {
                giveUpSecuring()
                guard let lack = await path.lack(after: error) else {
                    guard mayRetry, path.mayLack(after: error) else {
                        return wake(fail(error, establishment.report))
                    }
                    mayRetry = false
                    continue
                }
                wake(beginWaiting(lack))
                let needsNames = error.code == .resolverUnavailable
                guard await path.wait(forNames: needsNames) else {
                    return wake(fail(Self.waitedInVain(lack), establishment.report))
                }
                wake(endWaiting())
                mayRetry = true
            }
        }
    }

    private static func waitedInVain(_ lack: NetworkError) -> NetworkError {
        NetworkError(
            .timedOut, .connect, "no path appeared in time: \(lack.message)", cause: lack.cause)
    }

    private func beginWaiting(_ lack: NetworkError) -> Wakeups {
        state.withLock { state in
            var wakeups = Wakeups()
            guard state.phase == .preparing else { return wakeups }
            state.orMakeRare.lack = lack
            state.rare?.broadcast?.post(.waiting(lack))
            wakeups.broadcast = state.rare?.broadcast
            return wakeups
        }
    }

    private func endWaiting() -> Wakeups {
        state.withLock { state in
            var wakeups = Wakeups()
            guard state.phase == .preparing else { return wakeups }
            state.rare?.lack = nil
            state.rare?.broadcast?.post(.preparing)
            wakeups.broadcast = state.rare?.broadcast
            return wakeups
        }
    }

    private func adopt(_ socket: consuming Descriptor, _ report: EstablishmentReport) -> Wakeups {
        var socket: Descriptor? = consume socket
        return state.withLock { state in
            var wakeups = Wakeups()
            // Closed meanwhile: the socket goes with this call.
            guard state.phase == .preparing else { return wakeups }
            state.descriptor = socket.take()
            do throws(SystemError) {
                try register(&state)
                state.phase = .ready
                if case .tcp(let tcp) = plan?.transport {
                    state.mayDeferConnect = tcp.fastOpen == true
                }
                state.remote = state.descriptor.remoteAddress()?.compact
                state.rare?.broadcast?.post(.ready)
            } catch {
                let error = NetworkError(error, .connect, "the connection cannot be watched")
                state.descriptor = nil
                state.phase = .failed
                fail(&state, error)
            }
            endPreparing(&state, report, &wakeups)
            return wakeups
        }
    }

    private func fail(_ error: NetworkError, _ report: EstablishmentReport) -> Wakeups {
        state.withLock { state in
            var wakeups = Wakeups()
            guard state.phase == .preparing else { return wakeups }
            state.phase = .failed
            fail(&state, error)
            endPreparing(&state, report, &wakeups)
            return wakeups
        }
    }

    func endPreparing(
        _ state: inout State, _ report: EstablishmentReport, _ wakeups: inout Wakeups
    ) {
        let rare = state.orMakeRare
        rare.lack = nil
        rare.report = report
        rare.establishing = nil
        wakeups.waiters += rare.readyWaiters
        rare.readyWaiters = []
        wakeups.broadcast = rare.broadcast
    }

    // MARK: What others see

    var connectionState: ConnectionState {
        state.withLock { $0.connectionState }
    }

    /// Returns what ends the observation.
    @discardableResult
    func observe(_ observer: @escaping StateBroadcast.Observer) -> @Sendable () -> Void {
        let (broadcast, number) = state.withLock { state -> (StateBroadcast, Int) in
            let broadcast = state.orMakeRare.broadcast ?? StateBroadcast()
            state.orMakeRare.broadcast = broadcast
            return (broadcast, broadcast.add(observer, current: state.connectionState))
        }
        broadcast.deliver()
        return { broadcast.remove(number) }
    }

    func deliverStates() {
        state.withLock { $0.rare?.broadcast }?.deliver()
    }

    var report: EstablishmentReport? { state.withLock { $0.rare?.report } }

    var remoteEndpoint: Endpoint? {
        if let peer { return peer.path.remote }
        return state.withLock { state in
            if let remote = state.remote { return Endpoint(SocketAddress(remote)) }
            if let address = state.descriptor.remoteAddress() { return Endpoint(address) }
            return plan.flatMap { try? $0.endpoint.get() }
        }
    }

    var localEndpoint: Endpoint? {
        if let peer { return peer.path.local }
        return state.withLock { $0.descriptor.localAddress().flatMap { Endpoint($0) } }
    }

    /// Runs `body` on the socket, which is there while the connection is ready.
    func onSocket<Value>(
        _ stage: NetworkError.Stage, _ body: (borrowing Descriptor) throws(SystemError) -> Value
    ) throws(NetworkError) -> Value {
        let value: Value?
        do throws(SystemError) {
            value = try state.withLock { state throws(SystemError) in
                try state.descriptor.apply(body)
            }
        } catch {
            throw NetworkError(error, stage, "the socket does not answer")
        }
        guard let value else { throw .closed(stage) }
        return value
    }
}

extension ConnectionCore.State {
    var connectionState: ConnectionState {
        if let failure { return .failed(failure) }
        switch phase {
        case .setup: return .setup
        case .preparing, .securing, .upgrading: return rare?.lack.map { .waiting($0) } ?? .preparing
        case .ready, .closing: return .ready
        case .failed, .closed: return .cancelled
        }
    }
}

extension Optional where Wrapped == Descriptor, Wrapped: ~Copyable {
    fileprivate borrowing func apply<Value>(
        _ body: (borrowing Descriptor) throws(SystemError) -> Value
    ) throws(SystemError) -> Value? {
        switch self {
        case .some(let descriptor): try body(descriptor)
        case .none: nil
        }
    }

    borrowing func remoteAddress() -> SocketAddress? {
        switch self {
        case .some(let descriptor): try? descriptor.remoteAddress()
        case .none: nil
        }
    }

    borrowing func localAddress() -> SocketAddress? {
        switch self {
        case .some(let descriptor): try? descriptor.localAddress()
        case .none: nil
        }
    }
}
