internal import TowpathReactor

/// Counts the connections of a listener and holds back new ones beyond the limit.
final class ConnectionGate: Sendable {
    private struct State {
        var count = 0
        var limit = Int.max
        var roomWaiter: Waiter?
        var idleWaiter: Waiter?
    }

    private let state = Locked(State())

    var count: Int { state.withLock { $0.count } }

    /// Whether one more connection may be added, beside some that are about to be.
    func hasRoom(beside others: Int = 0) -> Bool {
        state.withLock { $0.count + others < $0.limit }
    }

    func setLimit(_ limit: Int) {
        let waiter = state.withLock { state in
            state.limit = max(1, limit)
            return state.count < state.limit ? state.roomWaiter.take() : nil
        }
        waiter?.finish(.ready)
    }

    func enter() {
        state.withLock { $0.count += 1 }
    }

    func leave() {
        let (room, idle) = state.withLock { state in
            state.count -= 1
            return (
                state.count < state.limit ? state.roomWaiter.take() : nil,
                state.count == 0 ? state.idleWaiter.take() : nil
            )
        }
        room?.finish(.ready)
        idle?.finish(.ready)
    }

    /// Wakes whoever waits for room, to look at something else.
    func interrupt() {
        state.withLock { $0.roomWaiter.take() }?.finish(.ready)
    }

    /// Waits until a connection may be added, or ``interrupt()``, or the task's cancellation.
    func waitForRoom(on loop: EventLoop) async {
        let waiter = Waiter()
        let hasRoom = state.withLock { state in
            if state.count >= state.limit { state.roomWaiter = waiter }
            return state.count < state.limit
        }
        if !hasRoom { _ = await waiter.wait(on: loop, until: nil) }
    }

    /// Waits until the last connection has gone; false at the deadline or when cancelled.
    func waitUntilIdle(on loop: EventLoop, until deadline: UInt64) async -> Bool {
        let waiter = Waiter()
        let isIdle = state.withLock { state in
            if state.count > 0 { state.idleWaiter = waiter }
            return state.count == 0
        }
        if isIdle { return true }
        return await waiter.wait(on: loop, until: deadline) == .ready
    }
}
