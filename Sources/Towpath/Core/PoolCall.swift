internal import TowpathReactor

/// A call on a blocking pool, which its caller can withdraw while it waits for a thread. Once begun it is
/// waited for, so that nothing happens behind the caller's back, or it may be abandoned.
final class PoolCall<Value: Sendable>: Sendable {
    private enum Stage {
        case queued, begun, withdrawn
        case done(Value)
    }

    private let progress = Locked(Stage.queued)
    private let waiter = Waiter()
    private let end = Waiter()
    private let pool: BlockingPool
    private let mayBeAbandoned: Bool
    private let work: @Sendable () -> Value

    init(
        on pool: BlockingPool = .shared, mayBeAbandoned: Bool = false,
        _ work: @escaping @Sendable () -> Value
    ) {
        self.pool = pool
        self.mayBeAbandoned = mayBeAbandoned
        self.work = work
    }

    /// Throws `CancellationError` or ``NetworkError/Code/timedOut`` if it was withdrawn.
    func run(
        on loop: EventLoop, until deadline: UInt64, _ stage: NetworkError.Stage
    ) async throws -> Value {
        do throws(SystemError) {
            try pool.submit { self.runHere() }
        } catch {
            throw NetworkError(error, stage, "no thread can be started")
        }
        let wake = await waiter.wait(on: loop, until: deadline)
        if wake != .ready {
            if leaveQueue(for: .withdrawn) || mayBeAbandoned {
                throw ConnectionCore.error(for: wake)
            }
            await end.waitUncancelled()
        }
        guard case .done(let value) = progress.withLock({ $0 }) else {
            throw NetworkError.closed(stage)
        }
        return value
    }

    private func runHere() {
        guard leaveQueue(for: .begun) else { return }
        let value = work()
        progress.withLock { $0 = .done(value) }
        waiter.finish(.ready)
        end.finish(.ready)
    }

    /// One of the two is first: the thread, or the caller who stops waiting.
    private func leaveQueue(for next: Stage) -> Bool {
        progress.withLock { progress in
            guard case .queued = progress else { return false }
            progress = next
            return true
        }
    }
}
