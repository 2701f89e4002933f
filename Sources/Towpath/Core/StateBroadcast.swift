internal import TowpathReactor

/// Tells observers of a connection's states, each once and in order.
///
/// States are posted and observers added under the connection's lock, which fixes the order; they
/// are delivered after it.
final class StateBroadcast: Sendable {
    typealias Observer = @Sendable (ConnectionState) -> Void

    private struct State {
        var observers: [(number: Int, call: Observer)] = []
        /// How many observers there have been.
        var count = 0
        var pending: [(state: ConnectionState, observers: Range<Int>)] = []
        var isDelivering = false
    }

    private let state = Locked(State())

    /// The observer will hear `current`, then all that is posted from now on. Returns its number.
    @discardableResult
    func add(_ observer: @escaping Observer, current: ConnectionState) -> Int {
        state.withLock { state in
            let number = state.count
            state.count += 1
            state.observers.append((number, observer))
            state.pending.append((current, number..<number + 1))
            return number
        }
    }

    func remove(_ number: Int) {
        let observers = state.withLock { state in
            defer { state.observers.removeAll { $0.number == number } }
            return state.observers
        }
        // What it held goes once the lock is free.
        withExtendedLifetime(observers) {}
    }

    func post(_ new: ConnectionState) {
        state.withLock { $0.pending.append((new, 0..<$0.count)) }
    }

    /// Whoever comes first delivers for all.
    func deliver() {
        while true {
            let next: (state: ConnectionState, observers: [Observer])? = state.withLock { state in
                guard !state.isDelivering, !state.pending.isEmpty else { return nil }
                state.isDelivering = true
                let next = state.pending.removeFirst()
                let called = state.observers.filter { next.observers.contains($0.number) }
                return (next.state, called.map(\.call))
            }
            guard let next else { return }
            for observer in next.observers { observer(next.state) }
            state.withLock { $0.isDelivering = false }
        }
    }
}
