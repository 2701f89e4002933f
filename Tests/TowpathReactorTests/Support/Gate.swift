import CTowpathLinux
import TowpathReactor

/// Holds a thread of the reactor until the test lets it go: the way to make an order certain.
/// Never for a task of the shared pool.
final class Gate: Sendable {
    private let event = Descriptor(owning: Int32(shim_eventfd()))

    func open() {
        shim_eventfd_signal(event.number)
    }

    /// Blocks the thread until the gate is open; false if nobody opens it within a minute.
    @discardableResult
    func wait() -> Bool {
        shim_poll_one(event.number, Int16(POLLIN), 60_000) > 0
    }
}
