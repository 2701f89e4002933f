import Glibc
import TestSupport
import Testing
import Towpath
import TowpathReactor

/// Which call meets the end of a connection first is chance: none of the others may miss it.
@Suite("An end that another call met first", .timeLimit(.minutes(1)))
struct ConnectionErrorOrderTests {
    /// Holds the connection's loop until the body is over.
    private func holdingLoop<Value>(
        of connection: Connection<TCP>, _ body: () async throws -> Value
    ) async throws -> Value {
        let gate = try StreamGate()
        let held = Task(executorPreference: connection.executor) { try gate.wait() }
        try await gate.arrival()
        let result: Result<Value, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        gate.open()
        _ = try await held.value
        return try result.get()
    }

    @Test("a send that waits behind an owed one ends, though a receive met the reset")
    func queuedSend() async throws {
        let (near, peer) = try await Streams.connected()
        // Of this send the kernel takes a part; the rest is owed once its caller is cancelled.
        let first = await Streams.parked(on: near) {
            try await near.send(Streams.pattern(Streams.large))
        }
        let second = await Streams.parked(on: near) { try await near.send([1]) }
        let finish = await Streams.parked(on: near) { try await near.finish() }
        first.cancel()
        _ = await first.result
        try await holdingLoop(of: near) {
            peer.reset()
            let error = await Streams.failure { try await near.receive() }
            #expect(error?.code == .connectionReset)
        }
        for task in [second, finish] {
            let error = await Streams.failure { try await task.value }
            #expect(error?.code == .connectionReset)
        }
    }

    @Test("an error that a send meets first is the one that it throws")
    func firstSend() async throws {
        let (near, peer) = try await Streams.connected()
        try await holdingLoop(of: near) {
            peer.reset()
            try await Streams.until {
                try near.withSocket { $0.isReady(for: Int32(POLLHUP), milliseconds: 0) }
            }
            let first = await Streams.failure { try await near.send([1]) }
            #expect(first?.code == .connectionReset)
            // EPIPE would say that it had been told before.
            #expect(first?.cause == .system(errno: ECONNRESET, call: "send"))
        }
    }

    @Test("a receive of much ends in time, though bytes never stop", arguments: [false, true])
    func endlessBytes(onLoop: Bool) async throws {
        let (near, far) = try Connection.pair()
        let sender = Task {
            let bytes = Streams.pattern(65_536)
            while !Task.isCancelled { try await far.send(bytes) }
        }
        let executor: any TaskExecutor = onLoop ? near.executor : globalConcurrentExecutor
        let receiver = Task(executorPreference: executor) {
            await Streams.failure {
                try await near.receive(exactly: 1 << 40, timeout: .milliseconds(50))
            }
        }
        #expect(await receiver.value?.code == .timedOut)
        let cancelled = Task(executorPreference: executor) {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await near.receive(exactly: 1 << 40)
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        sender.cancel()
        _ = await sender.result
    }

    @Test("a send of much ends in time, though the peer never stops reading")
    func endlessReader() async throws {
        let (near, far) = try Connection.pair()
        let reader = Task { for try await _ in far.chunks {} }
        let sender = Task(executorPreference: near.executor) {
            await Streams.failure {
                // Sparse memory: the zeros are not there before they are sent.
                try await near.send(
                    [UInt8](repeating: 0, count: 1 << 29), timeout: .milliseconds(20))
            }
        }
        #expect(await sender.value?.code == .timedOut)
        near.abort()
        _ = await reader.result
    }
}
