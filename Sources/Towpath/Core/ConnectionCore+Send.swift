internal import TowpathReactor

/// Sending. Bytes go straight to the kernel; while it is full the caller waits. Sends from several
/// tasks go out whole and in order: one holds the right to send, the others queue.
extension ConnectionCore {
    enum SendStep {
        case done
        case failed(NetworkError)
        /// The kernel is full. Whoever sees this or `spent` holds the right to send.
        case blocked
        case spent
        /// Somebody else is sending.
        case queued
        /// Try again at once.
        case retry
        case notOpen
    }

    /// Sends bytes if the kernel takes them all now; otherwise `sent` tells how many it took, and
    /// `send` goes on from there.
    func sendAtOnce(_ bytes: UnsafeRawBufferPointer, _ sent: inout Int) throws -> Bool {
        if Task.isCancelled { throw CancellationError() }
        return state.withLock { state in
            guard state.phase == .ready, state.isWritable, !state.isSending, !state.outputFinished,
                !state.owes, state.failure == nil, !state.budget.isSpent(on: loop),
                case .done(let count) = state.descriptor.send(bytes)
            else { return false }
            state.budget.spend(count)
            sent = count
            if count == bytes.count { return true }
            state.isSending = true
            return false
        }
    }

    /// Sends what `sendAtOnce` left.
    func send(_ bytes: ArraySlice<UInt8>, sent: Int, timeout: Duration?) async throws {
        try await send(
            count: bytes.count, sent: sent, timeout: timeout,
            write: { socket, offset in
                bytes.withUnsafeBytes { socket.send(.init(rebasing: $0[offset...])) }
            }, rest: { bytes.dropFirst($0) })
    }

    /// Sends `count` bytes, of which `sendAtOnce` has sent some. `write` hands the kernel what lies
    /// behind an offset; `rest` copies it, which is needed only if the caller stops waiting in the
    /// middle.
    func send(
        count: Int, sent: Int = 0, timeout: Duration?,
        write: (borrowing Descriptor, Int) -> Transfer, rest: (Int) -> ArraySlice<UInt8>
    ) async throws {
        if sent == 0, Task.isCancelled { throw CancellationError() }
        let deadline = MonotonicClock.deadline(after: timeout)
        var offset = sent
        var holdsRight = sent > 0
        while true {
            let step = state.withLock { state in
                attempt(&state, count: count, offset: &offset, holdsRight: holdsRight, write)
            }
            switch step {
            case .done:
                if holdsRight { endSending() }
                return
            case .failed(let error):
                deliverStates()
                if holdsRight { endSending() }
                throw error
            case .blocked:
                holdsRight = true
                let wake = await parkWriter(until: deadline)
                if wake != .ready {
                    endSending(owing: offset == 0 ? [] : rest(offset))
                    throw Self.error(for: wake)
                }
            case .spent:
                holdsRight = true
                await loop.nextTurn()
            case .queued:
                let wake = await waitForTheRight(until: deadline)
                guard wake == .ready else { throw Self.error(for: wake) }
                holdsRight = true
            case .retry: break
            case .notOpen:
                try await open(until: deadline, .send)
            }
        }
    }

    static func error(for wake: Wake) -> any Error {
        wake == .cancelled
            ? CancellationError()
            : NetworkError.timedOut(.send, "the peer did not take the bytes in time")
    }

    private func attempt(
        _ state: inout State, count: Int, offset: inout Int, holdsRight: Bool,
        _ write: (borrowing Descriptor, Int) -> Transfer
    ) -> SendStep {
        if let refusal = refusal(&state, holdsRight: holdsRight) { return refusal }
        while offset < count {
            guard state.isWritable else {
                state.isSending = true
                return .blocked
            }
            if state.budget.isSpent(on: loop) {
                state.isSending = true
                return .spent
            }
            // A short write is tried again: only EAGAIN promises an edge.
            switch state.descriptor.map(write, offset) {
            case .done(let written):
                state.budget.spend(written)
                offset += written
            case .wouldBlock:
                state.isWritable = false
            case .failed(let code):
                let error = NetworkError(SystemError(code, "send"), .send, "send failed")
                fail(&state, error)
                return .failed(state.failure ?? error)
            }
        }
        return .done
    }

    func refusal(_ state: inout State, holdsRight: Bool) -> SendStep? {
        switch state.phase {
        case .setup, .preparing: return .notOpen
        case .failed, .closed: return .failed(state.failure ?? .closed(.send))
        case .ready, .closing: break
        }
        if let failure = state.failure { return .failed(failure) }
        // A send that was accepted before finish() or close() goes on, but nothing follows the FIN.
        if holdsRight, !state.finSent { return nil }
        if state.outputFinished {
            return .failed(state.phase == .closing ? .closed(.send) : .outputFinished)
        }
        return state.isSending || state.owes ? .queued : nil
    }

    // MARK: The right to send

    /// Queues behind the others.
    func waitForTheRight(until deadline: UInt64) async -> Wake {
        let waiter = Waiter()
        let isFree = state.withLock { state in
            guard state.isSending || state.owes else {
                state.isSending = true
                return true
            }
            state.orMakeRare.senders.append(waiter)
            return false
        }
        if isFree { return .ready }
        let wake = await waiter.wait(on: loop, until: deadline)
        if wake != .ready {
            state.withLock { $0.rare?.senders.removeAll { $0 === waiter } }
        }
        return wake
    }

    /// Gives the right on, and leaves `owing` for the loop to send before the next sender.
    func endSending(owing: ArraySlice<UInt8> = []) {
        let wakeups = state.withLock { state in
            var wakeups = Wakeups()
            state.isSending = false
            if !owing.isEmpty, state.isOpen, state.failure == nil {
                state.orMakeRare.owed = owing
                armOutput(&state)
            }
            flushOwed(&state, &wakeups)
            return wakeups
        }
        wake(wakeups)
    }

    func passSending(to first: Waiter) {
        var sender: Waiter? = first
        while let next = sender, !next.finish(.ready) {
            // It stopped waiting meanwhile.
            let wakeups = state.withLock { state in
                var wakeups = Wakeups()
                state.isSending = false
                offerSending(&state, &wakeups)
                return wakeups
            }
            sender = wakeups.sender
            for waiter in wakeups.waiters { waiter.finish(.ready) }
        }
    }

    /// Sends what is owed, if nobody else is sending, then lets the next one send.
    func flushOwed(_ state: inout State, _ wakeups: inout Wakeups) {
        guard !state.isSending else { return }
        while state.owes, state.isWritable, state.failure == nil, let rare = state.rare {
            let transfer = rare.owed.withUnsafeBytes { bytes in
                state.descriptor.map { descriptor, _ in descriptor.send(bytes) }
            }
            switch transfer {
            case .done(let written):
                rare.owed.removeFirst(written)
                if rare.owed.isEmpty { rare.owed = [] }
            case .wouldBlock:
                state.isWritable = false
            case .failed(let code):
                fail(&state, NetworkError(SystemError(code, "send"), .send, "send failed"))
                wakeups.broadcast = rare.broadcast
                rare.owed = []
            }
        }
        offerSending(&state, &wakeups)
    }

    /// Lets the next sender go, or, where none is left, sends the FIN that finish() asked for.
    private func offerSending(_ state: inout State, _ wakeups: inout Wakeups) {
        guard !state.isSending, !state.owes else { return }
        if let rare = state.rare, !rare.senders.isEmpty {
            state.isSending = true
            wakeups.sender = rare.senders.removeFirst()
        } else if state.outputFinished {
            sendEnd(&state, &wakeups)
        }
    }

    private func sendEnd(_ state: inout State, _ wakeups: inout Wakeups) {
        guard !state.finSent, state.isOpen else { return }
        if state.failure == nil {
            state.finSent = true
            state.descriptor.shutdownOutput()
        }
        if let rare = state.rare {
            wakeups.waiters += rare.finishWaiters
            rare.finishWaiters = []
        }
    }

    /// Ends the sending side in the middle of something: not even the sends that wait can follow it.
    func cutOff() {
        let wakeups = state.withLock { state in
            var wakeups = Wakeups()
            state.outputFinished = true
            sendEnd(&state, &wakeups)
            return wakeups
        }
        wake(wakeups)
    }

    // MARK: finish()

    /// Half-close: what was accepted goes out, then a FIN. New sends fail at once.
    func finish(timeout: Duration?) async throws {
        if Task.isCancelled { throw CancellationError() }
        let deadline = MonotonicClock.deadline(after: timeout)
        try await open(until: deadline, .send)
        let waiter = Waiter()
        let (wakeups, error, isDone) = state.withLock { state in
            var wakeups = Wakeups()
            if let failure = state.failure { return (wakeups, failure as NetworkError?, true) }
            guard state.isOpen else { return (wakeups, NetworkError.closed(.send), true) }
            state.outputFinished = true
            offerSending(&state, &wakeups)
            if !state.finSent { state.orMakeRare.finishWaiters.append(waiter) }
            return (wakeups, nil, state.finSent)
        }
        wake(wakeups)
        if let error { throw error }
        if isDone { return }
        let wake = await waiter.wait(on: loop, until: deadline)
        guard wake == .ready else { throw Self.error(for: wake) }
        if let failure = state.withLock({ $0.finSent ? nil : $0.failure ?? .closed(.send) }) {
            throw failure
        }
    }
}

extension Optional where Wrapped == Descriptor, Wrapped: ~Copyable {
    /// The call on a descriptor that the phase promises to be there.
    borrowing func map(
        _ call: (borrowing Descriptor, Int) -> Transfer, _ offset: Int = 0
    ) -> Transfer {
        switch self {
        case .some(let descriptor): call(descriptor, offset)
        case .none: .wouldBlock
        }
    }

    fileprivate borrowing func send(_ bytes: UnsafeRawBufferPointer) -> Transfer {
        switch self {
        case .some(let descriptor): descriptor.send(bytes)
        case .none: .wouldBlock
        }
    }

    fileprivate borrowing func shutdownOutput() {
        switch self {
        case .some(let descriptor): descriptor.shutdownOutput()
        case .none: break
        }
    }
}
