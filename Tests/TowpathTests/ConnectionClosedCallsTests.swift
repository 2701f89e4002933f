import Testing
import Towpath

/// How a test ends a connection.
enum ConnectionEnding: CaseIterable, CustomTestStringConvertible {
    case close, abort

    var testDescription: String { "\(self)" }

    func end(_ connection: Connection<TCP>) async {
        switch self {
        case .close: await connection.close()
        case .abort: connection.abort()
        }
    }
}

@Suite("Calls on a connection that is closed", .timeLimit(.minutes(1)))
struct ConnectionClosedCallsTests {
    static let calls: [(name: String, call: @Sendable (Connection<TCP>) async throws -> Void)] = [
        ("receive", { _ = try await $0.receive() }),
        ("exactly", { _ = try await $0.receive(exactly: 2) }),
        ("until", { _ = try await $0.receive(until: [1], limit: 2) }),
        ("chunks", { for try await _ in $0.chunks {} }),
        ("send", { try await $0.send([1]) }),
        ("span", { try await $0.send(([1] as [UInt8]).span.bytes) }),
        ("pieces", { try await $0.send(contentsOf: [[1], [2]]) }),
        ("finish", { try await $0.finish() }),
        ("start", { try await $0.start() }),
        ("file", { try await $0.sendFile(at: "/proc/self/cmdline") }),
        ("report", { _ = try $0.transferReport() }),
    ]

    @Test(
        "each call throws that it is closed", arguments: calls.map(\.name),
        ConnectionEnding.allCases)
    func after(name: String, ending: ConnectionEnding) async throws {
        let call = try #require(Self.calls.first { $0.name == name }).call
        let (near, peer) = try await Streams.connected()
        peer.close()
        await ending.end(near)
        await #expect(throws: Streams.error(.closed)) { try await call(near) }
        await #expect(throws: Streams.error(.closed)) { try await call(near) }
    }

    @Test(
        "each call on one that was never opened throws that it is closed",
        arguments: calls.map(\.name), ConnectionEnding.allCases)
    func neverOpened(name: String, ending: ConnectionEnding) async throws {
        let call = try #require(Self.calls.first { $0.name == name }).call
        let port = try StreamPort()
        let connection = Connection(to: port.endpoint) { TCP() }
        await ending.end(connection)
        #expect(connection.state == .cancelled)
        await #expect(throws: Streams.error(.closed)) { try await call(connection) }
    }

    @Test(
        "a receive that waits ends", arguments: ReceiveVariant.allCases, ConnectionEnding.allCases)
    func parkedReceive(variant: ReceiveVariant, ending: ConnectionEnding) async throws {
        let (near, peer) = try await Streams.connected()
        let call = await Streams.parked(on: near) { try await variant.receive(2, from: near) }
        let closer = Task { await ending.end(near) }
        await #expect(throws: Streams.error(.closed)) { try await call.value }
        peer.close()
        await closer.value
    }

    @Test("a receive with a timeout that waits ends")
    func parkedWithTimeout() async throws {
        let (near, far) = try Connection.pair()
        let call = await Streams.parked(on: near) {
            try await near.receive(timeout: .seconds(3_600))
        }
        near.abort()
        await #expect(throws: Streams.error(.closed)) { try await call.value }
        #expect(try await far.receive() == nil)
    }

    @Test("abort ends sends and finishes that wait")
    func parkedSends() async throws {
        let (near, peer) = try await Streams.connected()
        let bytes = [UInt8](repeating: 1, count: Streams.large)
        var calls = [await Streams.parked(on: near) { try await near.send(bytes) }]
        for _ in 0..<3 {
            calls.append(await Streams.parked(on: near) { try await near.send([2]) })
        }
        for _ in 0..<3 { calls.append(await Streams.parked(on: near) { try await near.finish() }) }
        let closing = await Streams.parked(on: near) { await near.close() }
        near.abort()
        for call in calls {
            await #expect(throws: Streams.error(.closed)) { try await call.value }
        }
        try await closing.value
        withExtendedLifetime(peer) {}
    }

    @Test(
        "an opening that is under way ends, and all who wait for it", arguments: calls.map(\.name))
    func opening(name: String) async throws {
        let call = try #require(Self.calls.first { $0.name == name }).call
        let (port, filler) = try await Streams.unanswering()
        let connection = Connection(to: port.endpoint) { Streams.patientTCP }
        let first = await Streams.parked(on: connection) { try await call(connection) }
        let second = await Streams.parked(on: connection) { try await connection.start() }
        #expect(connection.state == .preparing)
        await connection.close()
        await #expect(throws: Streams.error(.closed)) { try await first.value }
        await #expect(throws: Streams.error(.closed)) { try await second.value }
        #expect(connection.state == .cancelled)
        withExtendedLifetime(filler) {}
    }

    @Test("R-04 leaving the scope right after a write loses nothing", arguments: [true, false])
    func scopeExit(unreadInput: Bool) async throws {
        let port = try StreamPort()
        let bytes = Streams.pattern(300_000)
        let server = Task {
            let peer = try await port.accept()
            if unreadInput { try await peer.send([UInt8](repeating: 0, count: 50_000)) }
            let received = try await peer.receiveAll()
            peer.close()
            return received
        }
        try await withConnection(to: port.endpoint) {
            TCP()
        } body: { connection in
            // The input is there before the output leaves.
            if unreadInput { _ = try await connection.receive(exactly: 1) }
            try await connection.send(bytes)
        }
        Streams.expect(try await server.value, toBe: bytes)
    }

    @Test("R-04 a scope that is left by an error or a cancellation resets")
    func scopeError() async throws {
        struct Failure: Error {}
        for isCancelled in [true, false] {
            let port = try StreamPort()
            let task = Task {
                try await withConnection(to: port.endpoint) {
                    TCP()
                } body: { connection in
                    try await connection.send([1])
                    guard isCancelled else { throw Failure() }
                    withUnsafeCurrentTask { $0?.cancel() }
                }
            }
            _ = await task.result
            let peer = try await port.accept()
            await #expect(throws: (any Error).self) { try await peer.receiveAll() }
        }
    }
}
