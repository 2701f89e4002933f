import TestSupport
import TowpathReactor

/// Runs the body with a loop of its own, and ends the loop's thread afterwards.
func withLoop<Value>(
    name: String = "test-loop", _ body: (EventLoop) async throws -> Value
) async throws -> Value {
    let loop = try EventLoop(name: name)
    defer { loop.stop() }
    return try await body(loop)
}

extension EventLoop {
    /// Runs `body` on the loop's thread and waits for it.
    func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value
    {
        try await Task(executorPreference: self) { try body() }.value
    }
}

extension EventLoop {
    /// How many turns the loop makes until a deadline fires: few if it sleeps, thousands if not.
    func turns(during duration: Duration) async throws -> UInt32 {
        let ends = Inbox<UInt32>()
        let recorder = Recorder(onDeadline: { _ in ends.send(self.turn) })
        let before = try await run { self.turn }
        _ = schedule(at: MonotonicClock.deadline(after: duration), recorder, tag: 0)
        return try await ends.next() &- before
    }

    /// Lets the loop take every event that is there by now.
    func settle() async throws {
        for _ in 0..<3 { try await run {} }
    }
}
