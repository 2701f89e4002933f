internal import TowpathReactor

/// The events that one listener has not taken yet. When there are too many, those that follow are lost
/// until it has taken all, and a gap stands for them.
final class EventQueue: Sendable {
    static let limit = 4_096

    private struct State {
        var events = Ring<NetworkEvent>()
        var hasLost = false
        var isFinished = false
        var waiting: UnsafeContinuation<NetworkEvent?, Never>?
    }

    private let state = Locked(State())
    private let onEnd: @Sendable (ObjectIdentifier) -> Void

    init(onEnd: @escaping @Sendable (ObjectIdentifier) -> Void) { self.onEnd = onEnd }

    deinit { onEnd(ObjectIdentifier(self)) }

    /// The stream keeps the queue, and the queue ends with it.
    static func stream(of queue: EventQueue) -> AsyncStream<NetworkEvent> {
        AsyncStream { await queue.next() }
    }

    func hear(_ event: NetworkEvent) {
        let waiting = state.withLock { state -> UnsafeContinuation<NetworkEvent?, Never>? in
            guard !state.isFinished else { return nil }
            if let waiting = state.waiting.take() { return waiting }
            if state.hasLost || state.events.count == Self.limit {
                state.hasLost = true
            } else {
                state.events.append(event)
            }
            return nil
        }
        waiting?.resume(returning: event)
    }

    func finish() {
        let waiting = state.withLock { state in
            state.isFinished = true
            return state.waiting.take()
        }
        waiting?.resume(returning: nil)
    }

    private func next() async -> NetworkEvent? {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let isCancelled = Task.isCancelled
                let next = state.withLock { state -> NetworkEvent?? in
                    if let event = state.events.popFirst() { return event }
                    if state.hasLost {
                        state.hasLost = false
                        return NetworkEvent(.gap, cause: "events were not taken in time")
                    }
                    if state.isFinished || isCancelled { return .some(nil) }
                    state.waiting = continuation
                    return nil
                }
                if let next { continuation.resume(returning: next) }
            }
        } onCancel: {
            finish()
        }
    }
}
