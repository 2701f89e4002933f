internal import TowpathReactor

/// A call on the blocking pool, which its caller can withdraw while it waits for a thread. Once begun it
/// is waited for, so that nothing happens behind the caller's back.
final class PoolCall<Value: Sendable>: Sendable {
    private enum Stage {
        case queued, begun, withdrawn
        case done(Value)
    }

    private let stage = Locked(Stage.queued)
    private let waiter = Waiter()
    private let end = Waiter()
    private let work: @Sendable () -> Value

    init(_ work: @escaping @Sendable () -> Value) { self.work = work }

    /// Throws `CancellationError` or ``NetworkError/Code/timedOut`` if it was withdrawn.
    func run(on loop: EventLoop, until deadline: UInt64) async throws -> Value {
        do throws(SystemError) {
            try BlockingPool.shared.submit { self.runHere() }
        } catch {
            throw NetworkError(error, .send, "no thread to read the file")
        }
        let wake = await waiter.wait(on: loop, until: deadline)
        if wake != .ready {
            if leaveQueue(for: .withdrawn) { throw ConnectionCore.error(for: wake) }
            await end.waitUncancelled()
        }
        guard case .done(let value) = stage.withLock({ $0 }) else {
            throw NetworkError.closed(.send)
        }
        return value
    }

    private func runHere() {
        guard leaveQueue(for: .begun) else { return }
        let value = work()
        stage.withLock { $0 = .done(value) }
        waiter.finish(.ready)
        end.finish(.ready)
    }

    /// One of the two is first: the thread, or the caller who stops waiting.
    private func leaveQueue(for next: Stage) -> Bool {
        stage.withLock { stage in
            guard case .queued = stage else { return false }
            stage = next
            return true
        }
    }
}
