internal import CTowpathLinux

/// A bounded set of threads for what blocks: name resolution and files.
///
/// Threads are made as work comes and then stay, asleep. Work beyond the bound waits its turn.
package final class BlockingPool: Sendable {
    /// 16: a resolver that is down holds a thread for 10 s or more for each name.
    package static let shared = BlockingPool(limit: 16)

    /// For questions to the kernel about its network: it answers in microseconds, or waits for its lock
    /// of all interfaces, and they must not wait behind a resolver that is down.
    package static let network = BlockingPool(limit: 4)

    private struct State {
        var queue = Ring<@Sendable () -> Void>()
        var threadCount = 0
        var idleCount = 0
    }

    private let limit: Int
    private let state = Locked(State())
    // sem_t is made for sharing between threads; the pool lives as long as the process.
    private nonisolated(unsafe) let available: UnsafeMutablePointer<sem_t>

    package init(limit: Int) {
        self.limit = limit
        available = .allocate(capacity: 1)
        sem_init(available, 0, 0)
    }

    /// Runs `work` on a thread of the pool. Throws if there is no thread and none can be made.
    package func submit(_ work: @escaping @Sendable () -> Void) throws(SystemError) {
        // Under the lock, so that nobody counts on a thread that could not be made.
        try state.withLock { state throws(SystemError) in
            if state.idleCount <= state.queue.count, state.threadCount < limit {
                do throws(SystemError) {
                    try startThread()
                    state.threadCount += 1
                } catch {
                    if state.threadCount == 0 { throw error }
                }
            }
            state.queue.append(work)
        }
        sem_post(available)
    }

    /// Runs `work` on a thread of the pool and waits for it, cancelled or not: for calls that end
    /// soon.
    package func run<Value: Sendable>(
        _ work: @escaping @Sendable () -> Value
    ) async throws(SystemError) -> Value {
        let result: Result<Value, SystemError> = await withUnsafeContinuation { continuation in
            do throws(SystemError) {
                try submit { [self] in
                    let value = work()
                    // The continuation hands the value over, but ThreadSanitizer does not see that
                    // where it is resumed before anybody waits: the lock shows it.
                    state.withLock { _ in }
                    continuation.resume(returning: .success(value))
                }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
        state.withLock { _ in }
        return try result.get()
    }

    private func startThread() throws(SystemError) {
        let thread = try Thread.start(name: "towpath-pool") { self.work() }
        pthread_detach(thread)
    }

    private func work() {
        while true {
            state.withLock { $0.idleCount += 1 }
            while sem_wait(available) != 0 {}
            let work: (@Sendable () -> Void)? = state.withLock { state in
                state.idleCount -= 1
                return state.queue.popFirst()
            }
            work?()
        }
    }
}

/// Waiting on a thread of a pool.
package enum BlockingPause {
    package static func milliseconds(_ count: Int32) { _ = poll(nil, 0, count) }
}
