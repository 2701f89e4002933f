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
        let (isDone, error) = state.withLock { state -> (Bool, NetworkError?) in
            guard state.phase == .ready, state.isWritable, !state.isSending, !state.outputFinished,
                !state.owes, state.failure == nil, !state.budget.isSpent(on: loop)
            else { return (false, nil) }
            switch state.descriptor.send(bytes) {
            case .done(let count):
                state.budget.spend(count)
                sent = count
                state.isSending = count < bytes.count
                return (count == bytes.count, nil)
            case .wouldBlock:
                state.isWritable = false
                return (false, nil)
            case .failed(let code):
                return (false, sendFailed(&state, code))
            }
        }
        if let error {
            deliverStates()
            throw error
        }
        return isDone
    }

    /// The kernel tells an error once; whoever meets it keeps it.
    func sendFailed(_ state: inout State, _ code: Int32) -> NetworkError {
        let error = NetworkError(SystemError(code, "send"), .send, "send failed")
        fail(&state, error)
        return state.failure ?? error
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
                // A peer that reads as fast as we send would let nothing else look at these.
                if let wake = Self.interruption(deadline) {
                    endSending(owing: offset == 0 ? [] : rest(offset))
                    throw Self.error(for: wake)
                }
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

    /// Why a call that never had to wait should end all the same.
    static func interruption(_ deadline: UInt64) -> Wake? {
        if Task.isCancelled { return .cancelled }
        return deadline != .max && MonotonicClock.now >= deadline ? .timedOut : nil
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
        var calls = 0
        while offset < count {
            guard state.isWritable else {
                state.isSending = true
                return .blocked
            }
            // On any thread, since the loop may wait for the lock.
            if state.budget.isSpent(on: loop) || calls == TurnBudget.callLimit {
                state.isSending = true
                return .spent
            }
            calls += 1
            // A short write is tried again: only EAGAIN promises an edge.
            switch state.descriptor.map(write, offset) {
            case .done(let written):
                state.budget.spend(written)
                offset += written
            case .wouldBlock:
                state.isWritable = false
            case .failed(let code):
                return .failed(sendFailed(&state, code))
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

    borrowing func send(_ bytes: UnsafeRawBufferPointer) -> Transfer {
        switch self {
        case .some(let descriptor): descriptor.send(bytes)
        case .none: .wouldBlock
        }
    }

    borrowing func shutdownOutput() {
        switch self {
        case .some(let descriptor): descriptor.shutdownOutput()
        case .none: break
        }
    }
}
