import Testing
import Towpath

@Suite("Timeouts of single calls", .timeLimit(.minutes(1)))
struct ConnectionTimeoutTests {
    private static let short = Duration.milliseconds(5)

    @Test("a receive times out, keeps what came, and can be repeated")
    func receive() async throws {
        let (near, far) = try Connection.pair()
        try await far.send([1, 2])
        let calls: [@Sendable () async throws -> Any?] = [
            { try await near.receive(exactly: 3, timeout: Self.short) },
            { try await near.receive(until: [9], limit: 99, timeout: Self.short) },
            { try await near.receive(atLeast: 3, atMost: 9, timeout: Self.short) },
        ]
        for call in calls {
            let error = await Streams.failure(call)
            #expect(error?.code == .timedOut)
            #expect(error?.stage == .receive)
        }
        #expect(try await near.receive(exactly: 2, timeout: Self.short) == [1, 2])
        #expect(near.state == .ready)
        await #expect(throws: Streams.error(.timedOut)) {
            try await near.receive(timeout: Self.short)
        }
        await #expect(throws: Streams.error(.timedOut)) {
            var buffer: [UInt8] = [0]
            var elements = buffer.mutableSpan
            var bytes = elements.mutableBytes
            _ = try await near.receive(into: &bytes, timeout: Self.short)
        }
    }

    @Test("a timeout of zero takes what is there and does not wait", arguments: [0, -1])
    func zero(seconds: Int) async throws {
        let (near, far) = try Connection.pair()
        await #expect(throws: Streams.error(.timedOut)) {
            try await near.receive(timeout: .seconds(seconds))
        }
        try await far.send([1, 2])
        #expect(try await near.receive(timeout: .seconds(seconds)) == [1, 2])
        try await near.send([3], timeout: .seconds(seconds))
        #expect(try await far.receive() == [3])
    }

    @Test(
        "a timeout without end waits on",
        arguments: [Duration.seconds(Int64.max), .seconds(1 << 40)])
    func endless(timeout: Duration) async throws {
        let (near, far) = try Connection.pair()
        let call = await Streams.parked(on: near) { try await near.receive(timeout: timeout) }
        try await far.send([1])
        #expect(try await call.value == [1])
    }

    @Test("chunks time out when idle, and go on")
    func chunks() async throws {
        let (near, far) = try Connection.pair()
        try await far.send([1])
        var received: [UInt8] = []
        await #expect(throws: Streams.error(.timedOut)) {
            for try await chunk in near.chunks(atMost: 10, idleTimeout: Self.short) {
                received += chunk
            }
        }
        #expect(received == [1])
        try await far.send([2])
        try await far.finish()
        #expect(try await Streams.collect(near) == [2])
    }

    @Test("finish times out, and the end is sent all the same")
    func finish() async throws {
        let (near, peer) = try await Streams.connected()
        let bytes = Streams.pattern(Streams.large)
        let sender = await Streams.parked(on: near) { try await near.send(bytes) }
        let error = await Streams.failure { try await near.finish(timeout: Self.short) }
        #expect(error?.code == .timedOut)
        #expect(error?.stage == .send)
        let cancelled = await Streams.parked(on: near) { try await near.finish() }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        Streams.expect(try await peer.receiveAll(), toBe: bytes)
        try await sender.value
        try await near.finish(timeout: Self.short)
    }

    @Test("start times out, and the opening goes on for the others")
    func start() async throws {
        let (port, filler) = try await Streams.unanswering()
        let connection = Connection(to: port.endpoint) { Streams.patientTCP }
        let error = await Streams.failure { try await connection.start(timeout: Self.short) }
        #expect(error?.code == .timedOut)
        #expect(error?.stage == .connect)
        #expect(connection.state == .preparing)
        let calls: [@Sendable () async throws -> Any?] = [
            { try await connection.receive(timeout: Self.short) },
            { try await connection.send([1], timeout: Self.short) },
            { try await connection.finish(timeout: Self.short) },
        ]
        for call in calls {
            await #expect(throws: Streams.error(.timedOut)) { _ = try await call() }
        }
        let waiting = await Streams.parked(on: connection) { try await connection.start() }
        // There is room again: the kernel's next try of the same attempt is answered.
        let first = try await port.accept()
        try await waiting.value
        let second = try await port.accept()
        try await connection.send([7])
        try await connection.finish()
        #expect(try await second.receiveAll() == [7])
        withExtendedLifetime((filler, first)) {}
    }

    @Test("a cancelled start leaves the opening to the others")
    func cancelledStart() async throws {
        let (port, filler) = try await Streams.unanswering()
        let connection = Connection(to: port.endpoint) { Streams.patientTCP }
        let first = await Streams.parked(on: connection) { try await connection.start() }
        let second = await Streams.parked(on: connection) { try await connection.receive() }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        #expect(connection.state == .preparing)
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        #expect(connection.state == .preparing)
        connection.abort()
        withExtendedLifetime(filler) {}
    }

    @Test("a first use in a cancelled task opens nothing")
    func cancelledBefore() async throws {
        let port = try StreamPort()
        let connection = Connection(to: port.endpoint) { TCP() }
        let calls: [@Sendable () async throws -> Void] = [
            { try await connection.start() }, { _ = try await connection.receive() },
            { try await connection.send([1]) }, { try await connection.finish() },
            { try await connection.sendFile(at: "/proc/self/exe") },
        ]
        for call in calls {
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                try await call()
            }
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(connection.state == .setup)
        }
    }

    @Test("the connection's own timeout fails all who wait")
    func connectionTimeout() async throws {
        let (port, filler) = try await Streams.unanswering()
        let connection = Connection(to: port.endpoint) {
            TCP().connectionTimeout(.milliseconds(20))
        }
        async let first = Streams.failure { try await connection.start() }
        async let second = Streams.failure { try await connection.receive() }
        #expect(await first?.code == .timedOut)
        #expect(await second?.code == .timedOut)
        #expect(connection.state == .failed(Streams.error(.timedOut)))
        withExtendedLifetime(filler) {}
    }
}
