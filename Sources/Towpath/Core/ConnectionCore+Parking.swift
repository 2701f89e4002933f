internal import TowpathReactor

/// How calls wait for readiness: one in each direction, woken by the loop, a deadline or their task's
/// cancellation.
extension ConnectionCore {
    /// Parks the receive in progress until there may be something to read.
    func parkReader(until deadline: UInt64) async -> Wake {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { installReader($0, deadline) }
        } onCancel: {
            state.withLock { takeReader(&$0) }?.resume(returning: .cancelled)
        }
    }

    /// Parks the send in progress until the kernel may take more.
    func parkWriter(until deadline: UInt64) async -> Wake {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { installWriter($0, deadline) }
        } onCancel: {
            state.withLock { takeWriter(&$0) }?.resume(returning: .cancelled)
        }
    }

    func installReader(_ continuation: UnsafeContinuation<Wake, Never>, _ deadline: UInt64) {
        let wake = state.withLock { state -> Wake? in
            // Again under the lock: the edge may have come since the last look, and the cancellation
            // handler may have run before there was anybody to wake.
            if Task.isCancelled { return .cancelled }
            if state.isReadable || !state.phase.isReading { return .ready }
            state.reader = continuation
            if deadline != .max {
                state.readTimer = loop.schedule(at: deadline, self, tag: Self.readTag)
            }
            return nil
        }
        if let wake { continuation.resume(returning: wake) }
    }

    func installWriter(_ continuation: UnsafeContinuation<Wake, Never>, _ deadline: UInt64) {
        let wake = state.withLock { state -> Wake? in
            if Task.isCancelled { return .cancelled }
            if state.isWritable || !(state.isOpen || state.phase.isReading) { return .ready }
            state.writer = continuation
            armOutput(&state)
            if deadline != .max {
                state.writeTimer = loop.schedule(at: deadline, self, tag: Self.writeTag)
            }
            return nil
        }
        if let wake { continuation.resume(returning: wake) }
    }

    func takeReader(_ state: inout State) -> UnsafeContinuation<Wake, Never>? {
        guard let reader = state.reader else { return nil }
        state.reader = nil
        if let timer = state.readTimer.take() { loop.cancel(timer) }
        return reader
    }

    func takeWriter(_ state: inout State) -> UnsafeContinuation<Wake, Never>? {
        guard let writer = state.writer else { return nil }
        state.writer = nil
        if let timer = state.writeTimer.take() { loop.cancel(timer) }
        return writer
    }

    /// For all but TCP: asks for writable edges from now on. One is reported at once if it is there.
    func armOutput(_ state: inout State) {
        if let peer { return peer.hub.wakeWhenWritable(self) }
        guard !state.isOutputArmed, let token = state.token else { return }
        state.isOutputArmed = true
        state.descriptor?.modify(on: loop, token, state.events)
    }
}

extension Descriptor {
    fileprivate func modify(on loop: EventLoop, _ token: Token, _ events: ReadyEvents) {
        loop.modify(self, token: token, for: events)
    }
}
