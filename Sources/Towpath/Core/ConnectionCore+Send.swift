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
            switch put(&state, bytes) {
            case .done(let count):
                state.budget.spend(count)
                sent = count
                let isDone = count == bytes.count && !state.hasCiphertext
                state.isSending = !isDone
                return (isDone, nil)
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

    /// Bytes for the peer; `.done` tells how many were taken.
    func put(_ state: inout State, _ bytes: UnsafeRawBufferPointer) -> Transfer {
        if let tls = state.tls { return put(&state, tls, bytes) }
        return state.descriptor.send(bytes)
    }

    /// Several pieces, from an offset on.
    func put(_ state: inout State, gathering pieces: [[UInt8]], from offset: Int) -> Transfer {
        if let tls = state.tls { return put(&state, tls, gathering: pieces, from: offset) }
        return state.descriptor.map({ $0.send(gathering: pieces, from: $1) }, offset)
    }

    /// The kernel tells an error once; whoever meets it keeps it.
    func sendFailed(_ state: inout State, _ code: Int32) -> NetworkError {
        // The peer may have said why before it left.
        if let tls = state.tls { lookForAlert(&state, tls) }
        let error = NetworkError(SystemError(code, "send"), .send, "send failed")
        fail(&state, error)
        return state.failure ?? error
    }

    /// Sends what `sendAtOnce` left.
    func send(_ bytes: ArraySlice<UInt8>, sent: Int, timeout: Duration?) async throws {
        try await send(
            count: bytes.count, sent: sent, timeout: timeout,
            write: { core, state, offset in
                bytes.withUnsafeBytes { core.put(&state, .init(rebasing: $0[offset...])) }
            }, rest: { bytes.dropFirst($0) })
    }

    typealias Write = (ConnectionCore, inout State, Int) -> Transfer

    /// Sends `count` bytes, of which `sendAtOnce` has sent some. `write` hands the kernel what lies
    /// behind an offset; `rest` copies it, which is needed only if the caller stops waiting in the
    /// middle.
    func send(
        count: Int, sent: Int = 0, timeout: Duration?,
        write: Write, rest: (Int) -> ArraySlice<UInt8>
    ) async throws {
        if sent == 0, Task.isCancelled { throw CancellationError() }
        try await send(
            count: count, sent: sent, until: MonotonicClock.deadline(after: timeout),
            holdsRight: sent > 0, write: write, rest: rest)
    }

    /// - Parameters:
    ///   - holdsRight: Whether the caller holds the right to send.
    ///   - keepsRight: Whether it does so behind a send that succeeds.
    ///   - isBound: Whether the bytes must go even if the caller stops waiting before the first has gone.
    func send(
        count: Int, sent: Int = 0, until deadline: UInt64, holdsRight: Bool = false,
        keepsRight: Bool = false, isBound: Bool = false,
        write: Write, rest: (Int) -> ArraySlice<UInt8>
    ) async throws {
        var offset = sent
        var holdsRight = holdsRight
        while true {
            let step = state.withLock { state in
                attempt(&state, count: count, offset: &offset, holdsRight: holdsRight, write)
            }
            switch step {
            case .done:
                if holdsRight, !keepsRight { endSending() }
                return
            case .failed(let error):
                deliverStates()
                if holdsRight { endSending() }
                throw error
            case .blocked:
                holdsRight = true
                let wake = await parkWriter(until: deadline)
                if wake != .ready {
                    endSending(owing: offset == 0 && !isBound ? [] : rest(offset))
                    throw Self.error(for: wake)
                }
            case .spent:
                holdsRight = true
                await loop.nextTurn()
                // A peer that reads as fast as we send would let nothing else look at these.
                if let wake = Self.interruption(deadline) {
                    endSending(owing: offset == 0 && !isBound ? [] : rest(offset))
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

    func attempt(
        _ state: inout State, count: Int, offset: inout Int, holdsRight: Bool,
        _ write: Write
    ) -> SendStep {
        if let refusal = refusal(&state, holdsRight: holdsRight) { return refusal }
        var calls = 0
        while offset < count || state.hasCiphertext {
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
            switch write(self, &state, offset) {
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
        case .setup, .preparing, .securing, .upgrading: return .notOpen
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
