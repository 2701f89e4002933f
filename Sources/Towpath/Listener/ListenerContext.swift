internal import TowpathReactor

/// What a listener, its acceptor and its connections share.
final class ListenerContext: Sendable {
    typealias Observer = @Sendable (ListenerEvent) -> Void

    private enum Run { case idle, running, ended }

    private struct State {
        var observers: [Observer] = []
        var run = Run.idle
        var drainDeadline: UInt64?
        var watchdog: Watchdog?
    }

    let live = LiveConnections()
    let drain = DrainSignal()
    private let state = Locked(State())

    func observe(_ observer: @escaping Observer) {
        state.withLock { $0.observers.append(observer) }
    }

    func post(_ event: ListenerEvent) {
        for observer in state.withLock({ $0.observers }) { observer(event) }
    }

    func beginRun() throws(NetworkError) {
        try state.withLock { state throws(NetworkError) in
            guard state.run == .idle else {
                throw NetworkError(
                    .closed, .listen, "a listener runs once; make a new one to listen again")
            }
            state.run = .running
        }
    }

    func beginDrain(until deadline: UInt64) {
        state.withLock { $0.drainDeadline = min(deadline, $0.drainDeadline ?? .max) }
        drain.signal()
    }

    var drainDeadline: UInt64? { state.withLock { $0.drainDeadline } }

    /// Until when handlers may go on: for ever unless it drains, no longer once it was closed.
    var handlerDeadline: UInt64 {
        state.withLock { $0.run == .ended ? 0 : $0.drainDeadline ?? .max }
    }

    func watch(_ threshold: Duration) throws(SystemError) {
        let watchdog = try Watchdog(loops: EventLoopGroup.shared.all(), threshold: threshold) {
            [weak self] stall in self?.post(.stalled(stall.elapsed))
        }
        replaceWatchdog(watchdog)
    }

    func end() {
        state.withLock { $0.run = .ended }
        replaceWatchdog(nil)
    }

    var hasEnded: Bool { state.withLock { $0.run == .ended } }

    private func replaceWatchdog(_ new: Watchdog?) {
        let old = state.withLock { state in
            defer { state.watchdog = new }
            return state.watchdog
        }
        old?.stop()
    }
}
