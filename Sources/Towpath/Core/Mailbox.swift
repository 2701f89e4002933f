internal import TowpathReactor
internal import TowpathWire

/// Where look-ups and attempts report to the task that drives an establishment.
final class Mailbox: Sendable {
    enum Event: Sendable {
        case resolved(AddressFamily, Resolver.Answer)
        /// An attempt succeeded or failed: its socket knows.
        case answered(Int)
    }

    private struct State {
        var events: [Event] = []
        var waiter: Waiter?
    }

    private let state = Locked(State())

    func post(_ event: Event) {
        let waiter = state.withLock { state in
            state.events.append(event)
            return state.waiter.take()
        }
        waiter?.finish(.ready)
    }

    /// The next event; nil at the deadline and when the task is cancelled.
    func next(on loop: EventLoop, until deadline: UInt64) async -> Event? {
        let waiter = Waiter()
        let event = state.withLock { state -> Event? in
            if !state.events.isEmpty { return state.events.removeFirst() }
            state.waiter = waiter
            return nil
        }
        if let event { return event }
        _ = await waiter.wait(on: loop, until: deadline)
        return state.withLock { state in
            state.waiter = nil
            return state.events.isEmpty ? nil : state.events.removeFirst()
        }
    }
}
