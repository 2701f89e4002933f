internal import TowpathReactor

/// Why a parked call goes on.
enum Wake: Sendable {
    /// What it waited for is there, or never will be: look again.
    case ready
    case cancelled
    case timedOut
}

/// One call that waits for something rare (an establishment, its turn to send, a close), with a
/// deadline and the task's cancellation. The first outcome wins.
final class Waiter: EventHandler {
    private struct State {
        var outcome: Wake?
        var continuation: UnsafeContinuation<Wake, Never>?
    }

    private let state = Locked(State())

    /// Waits on behalf of the current task. To be called once.
    func wait(on loop: EventLoop, until deadline: UInt64) async -> Wake {
        let timer = deadline == .max ? nil : loop.schedule(at: deadline, self, tag: 0)
        let outcome = await withTaskCancellationHandler {
            await waitUncancelled()
        } onCancel: {
            finish(.cancelled)
        }
        if let timer { loop.cancel(timer) }
        return outcome
    }

    /// Waits for `finish` alone, whatever becomes of the task.
    @discardableResult
    func waitUncancelled() async -> Wake {
        await withUnsafeContinuation { continuation in
            let outcome = state.withLock { state in
                if state.outcome == nil { state.continuation = continuation }
                return state.outcome
            }
            if let outcome { continuation.resume(returning: outcome) }
        }
    }

    /// False if the waiter has another outcome already: whoever hands something over takes it back.
    @discardableResult
    func finish(_ outcome: Wake) -> Bool {
        let (isFirst, continuation) = state.withLock { state in
            guard state.outcome == nil else {
                return (false, nil as UnsafeContinuation<Wake, Never>?)
            }
            state.outcome = outcome
            defer { state.continuation = nil }
            return (true, state.continuation)
        }
        continuation?.resume(returning: outcome)
        return isFirst
    }

    func handle(_ events: ReadyEvents) {}

    func deadlineReached(_ tag: UInt8) { finish(.timedOut) }
}
