internal import TowpathReactor

/// Tells observers of a connection's states, each once and in order.
///
/// States are posted and observers added under the connection's lock, which fixes the order; they
/// are delivered after it.
final class StateBroadcast: Sendable {
    typealias Observer = @Sendable (ConnectionState) -> Void

    private struct State {
        var observers: [Observer] = []
        var pending: [(state: ConnectionState, observers: Range<Int>)] = []
        var isDelivering = false
    }

    private let state = Locked(State())

    /// The observer will hear `current`, then all that is posted from now on.
    func add(_ observer: @escaping Observer, current: ConnectionState) {
        state.withLock { state in
            let index = state.observers.count
            state.observers.append(observer)
            state.pending.append((current, index..<index + 1))
        }
    }

    func post(_ new: ConnectionState) {
        state.withLock { $0.pending.append((new, 0..<$0.observers.count)) }
    }

    /// Whoever comes first delivers for all.
    func deliver() {
        while true {
            let next: (state: ConnectionState, observers: [Observer])? = state.withLock { state in
                guard !state.isDelivering, !state.pending.isEmpty else { return nil }
                state.isDelivering = true
                let next = state.pending.removeFirst()
                return (next.state, Array(state.observers[next.observers]))
            }
            guard let next else { return }
            for observer in next.observers { observer(next.state) }
            state.withLock { $0.isDelivering = false }
        }
    }
}
