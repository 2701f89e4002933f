internal import TowpathReactor

/// The connections of a listener that have a handler: holds back new ones beyond the limit, and wakes
/// them when their handlers are cancelled.
final class LiveConnections: Sendable {
    private struct State {
        var cores: [ObjectIdentifier: ConnectionCore] = [:]
        var limit = Int.max
        var roomWaiter: Waiter?
        var idleWaiter: Waiter?
    }

    private let state = Locked(State())

    var count: Int { state.withLock { $0.cores.count } }

    /// Whether one more connection may be added, beside some that are about to be.
    func hasRoom(beside others: Int = 0) -> Bool {
        state.withLock { $0.cores.count + others < $0.limit }
    }

    func setLimit(_ limit: Int) {
        let waiter = state.withLock { state in
            state.limit = max(1, limit)
            return state.cores.count < state.limit ? state.roomWaiter.take() : nil
        }
        waiter?.finish(.ready)
    }

    func insert(_ core: ConnectionCore) {
        state.withLock { $0.cores[ObjectIdentifier(core)] = core }
    }

    func remove(_ core: ConnectionCore) {
        let (room, idle) = state.withLock { state in
            state.cores[ObjectIdentifier(core)] = nil
            return (
                state.cores.count < state.limit ? state.roomWaiter.take() : nil,
                state.cores.isEmpty ? state.idleWaiter.take() : nil
            )
        }
        room?.finish(.ready)
        idle?.finish(.ready)
    }

    /// Lets those that are parked in a receive look again: the listener drains, or has cancelled the
    /// handlers, which have no cancellation handler of their own there (see `ConnectionCore.claim`).
    func wakeParked() {
        for core in state.withLock({ Array($0.cores.values) }) { core.wakeReader() }
    }

    /// Lets whoever waits look at the deadline again.
    func interrupt() {
        let (room, idle) = state.withLock { ($0.roomWaiter.take(), $0.idleWaiter.take()) }
        room?.finish(.ready)
        idle?.finish(.ready)
    }

    /// Waits until a connection may be added; false at the deadline or when cancelled.
    func waitForRoom(on loop: EventLoop, until deadline: () -> UInt64) async -> Bool {
        await wait(for: { $0.cores.count < $0.limit }, \.roomWaiter, on: loop, until: deadline)
    }

    /// Waits until the last connection has gone; false at the deadline or when cancelled.
    func waitUntilIdle(on loop: EventLoop, until deadline: () -> UInt64) async -> Bool {
        await wait(for: { $0.cores.isEmpty }, \.idleWaiter, on: loop, until: deadline)
    }

    private func wait(
        for isFulfilled: (State) -> Bool, _ place: WritableKeyPath<State, Waiter?>,
        on loop: EventLoop, until deadline: () -> UInt64
    ) async -> Bool {
        while !Task.isCancelled {
            let waiter = Waiter()
            let isOver = state.withLock { state in
                let isOver = isFulfilled(state)
                if !isOver { state[keyPath: place] = waiter }
                return isOver
            }
            if isOver { return true }
            // Whoever changes it calls `interrupt` afterwards, which finds the waiter.
            let deadline = deadline()
            guard MonotonicClock.now < deadline else { return false }
            _ = await waiter.wait(on: loop, until: deadline)
        }
        return false
    }
}
