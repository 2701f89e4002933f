import Foundation
import Glibc
import TestSupport
import Testing
import Towpath

@Suite("What streams hold", .serialized, .timeLimit(.minutes(1)))
struct ConnectionResourceTests {
    private static var descriptorCount: Int {
        get throws { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }
    }

    /// A line of /proc/self/status, in bytes.
    private static func status(_ name: String) throws -> Int {
        let text = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("\(name):") })
        let number = line.split(whereSeparator: { !$0.isNumber }).first
        return try #require(number.flatMap { Int($0) }) * 1_024
    }

    /// Ways to open and end one connection.
    private static let lives: [@Sendable (StreamPort) async throws -> Void] = [
        { port in
            let connection = Connection(to: port.endpoint) { TCP() }
            try await connection.start()
            let peer = try await port.accept()
            peer.close()
            await connection.close()
        },
        { port in
            let connection = Connection(to: port.endpoint) { TCP() }
            try await connection.send([1])
            let peer = try await port.accept()
            connection.abort()
            _ = try await peer.receiveToTheEnd()
        },
        { port in
            let connection = Connection(to: port.endpoint) { TCP() }
            try await connection.send([1])
            let peer = try await port.accept()
            peer.reset()
            _ = await Streams.failure { try await connection.receive() }
        },
        { port in
            // Dropped with a call that was cancelled, and one under way.
            let connection = Connection(to: port.endpoint) { TCP() }
            let task = Task { try await connection.receive() }
            let peer = try await port.accept()
            task.cancel()
            _ = await task.result
            peer.close()
        },
        { port in
            // Given up while it is being opened.
            let connection = Connection(to: port.endpoint) { TCP() }
            let task = Task { try await connection.start() }
            await Task.yield()
            connection.abort()
            _ = await task.result
        },
        { port in
            let connection = Connection(to: port.endpoint) { TCP() }
            try await connection.start()
            let peer = try await port.accept()
            try await connection.sendFile(at: "/proc/self/exe", count: 1_000)
            let task = Task { try await connection.sendFile(at: "/proc/self/exe") }
            _ = try await peer.receive(exactly: 2_000)
            task.cancel()
            _ = await task.result
        },
    ]

    @Test("connections that have ended leave no descriptor", arguments: lives.indices)
    func descriptors(life: Int) async throws {
        let before = try Self.descriptorCount
        for _ in 0..<200 {
            let port = try StreamPort()
            try await Self.lives[life](port)
        }
        // Other suites open and close some meanwhile; a leak would show as 200 or more.
        try await Streams.until { try Self.descriptorCount < before + 150 }
    }

    @Test("pairs and adopted descriptors leave none behind")
    func pairs() async throws {
        let before = try Self.descriptorCount
        for round in 0..<200 {
            let (near, far) = try Connection.pair()
            try await near.send([1])
            if round % 2 == 0 { far.abort() }
            async let other: Void = far.close()
            await near.close()
            await other
            let (first, second) = try Streams.socketPair()
            close(second)
            _ = try? Connection(adopting: first) { UDP() }
        }
        try await Streams.until { try Self.descriptorCount < before + 150 }
    }

    @Test(
        "a sender whose peer does not read holds no copy of what it sends",
        .disabled(if: isSanitized, "a sanitizer's own memory blurs the measurement"))
    func blockedSender() async throws {
        let (near, peer) = try await Streams.connected()
        let bytes = [UInt8](repeating: 1, count: 64_000_000)
        let before = try Self.status("VmRSS")
        let first = await Streams.parked(on: near) { try await near.send(bytes) }
        var others: [Task<Void, any Error>] = []
        for _ in 0..<16 {
            others.append(await Streams.parked(on: near) { try await near.send(bytes) })
        }
        // Other suites run meanwhile; a copy would be 64 MB, one for each sender a gigabyte.
        #expect(try Self.status("VmRSS") - before < 40_000_000)
        // Of those that give up, only the one that began leaves something, and only once.
        for other in others { other.cancel() }
        first.cancel()
        for call in others + [first] { _ = await call.result }
        #expect(try Self.status("VmRSS") - before < 110_000_000)
        near.abort()
        peer.close()
    }

    @Test(
        "a reader that does not read holds nothing of what its peer sends",
        .disabled(if: isSanitized, "a sanitizer's own memory blurs the measurement"))
    func blockedReader() async throws {
        let (near, peer) = try await Streams.connected()
        try await peer.send([1])
        #expect(try await near.receive() == [1])
        let bytes = [UInt8](repeating: 1, count: 64_000_000)
        let before = try Self.status("VmRSS")
        let sender = Task { try await peer.send(bytes) }
        // The peer is stuck once nothing moves: the kernel holds what it can.
        var last = -1
        try await Streams.until {
            let unread = try near.transferReport().unreadByteCount
            defer { last = unread }
            return unread > 60_000 && unread == last
        }
        await Streams.settle(near)
        #expect(try Self.status("VmRSS") - before < 40_000_000)
        near.abort()
        _ = await sender.result
    }
}
