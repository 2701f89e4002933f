internal import TowpathReactor

/// Tells the handlers of a listener that they should come to an end. Not a cancellation: what they are
/// doing goes on.
final class DrainSignal: Sendable {
    private struct State {
        var isSignalled = false
        var waiters: [Waiter] = []
    }

    private let state = Locked(State())

    var isSignalled: Bool { state.withLock { $0.isSignalled } }

    func signal() {
        let waiters = state.withLock { state in
            state.isSignalled = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.finish(.ready) }
    }

    func wait(on loop: EventLoop) async {
        let waiter = Waiter()
        let isSignalled = state.withLock { state in
            if !state.isSignalled { state.waiters.append(waiter) }
            return state.isSignalled
        }
        if isSignalled { return }
        _ = await waiter.wait(on: loop, until: .max)
        state.withLock { $0.waiters.removeAll { $0 === waiter } }
    }
}
