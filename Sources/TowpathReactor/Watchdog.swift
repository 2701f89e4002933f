internal import CTowpathLinux

/// A thread that looks whether any loop has been in one turn for too long: a handler that blocks
/// stalls all connections of its loop. Off unless asked for; while it runs the process is not idle.
package final class Watchdog: Sendable {
    package struct Stall: Sendable {
        /// Which loop, in the order of the group.
        package let loop: Int
        package let elapsed: Duration
    }

    /// Open as long as the thread looks at it.
    private final class WakeUp: Sendable {
        let descriptor: Descriptor

        init() throws(SystemError) {
            descriptor = Descriptor(owning: Int32(try check(shim_eventfd(), "eventfd")))
        }
    }

    private let wakeUp: WakeUp
    // Written once in init.
    private nonisolated(unsafe) var thread = pthread_t()

    /// Reports each stall once, from the watchdog's own thread.
    package init(
        loops: [EventLoop], threshold: Duration, report: @escaping @Sendable (Stall) -> Void
    ) throws(SystemError) {
        let wakeUp = try WakeUp()
        self.wakeUp = wakeUp
        for loop in loops { loop.watch() }
        let limit = MonotonicClock.nanoseconds(in: threshold)
        let period = Int32(clamping: max(1, limit / 4_000_000))
        thread = try Thread.start(name: "towpath-watch") {
            var reported = [UInt64](repeating: 0, count: loops.count)
            // Readable only once `stop` has written to it.
            while shim_poll_one(wakeUp.descriptor.number, Int16(POLLIN), period) == 0 {
                let now = MonotonicClock.now
                for (index, loop) in loops.enumerated() {
                    let began = loop.turnBegan
                    guard began != 0, began != reported[index], now > began, now - began >= limit
                    else { continue }
                    reported[index] = began
                    report(Stall(loop: index, elapsed: .nanoseconds(now - began)))
                }
            }
        }
    }

    /// Ends the thread and waits for it, unless it is the caller: a report may end its own watch.
    package func stop() {
        shim_eventfd_signal(wakeUp.descriptor.number)
        if pthread_equal(pthread_self(), thread) == 0 {
            pthread_join(thread, nil)
        } else {
            pthread_detach(thread)
        }
    }
}
