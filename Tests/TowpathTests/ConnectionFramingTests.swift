import TestSupport
import Testing
import Towpath

@Suite("Messages of many tasks over one stream", .timeLimit(.minutes(1)))
struct ConnectionFramingTests {
    /// A message: its sender, its length, and that many bytes made of both.
    static func message(_ sender: UInt8, _ length: Int) -> [UInt8] {
        [sender] + (0..<4).map { UInt8(truncatingIfNeeded: length >> ($0 * 8)) }
            + [UInt8](repeating: sender ^ UInt8(truncatingIfNeeded: length), count: length)
    }

    /// Reads messages to the end of the stream and fails at the first that is not whole.
    static func parse(_ connection: Connection<TCP>) async throws -> [[UInt8]] {
        var messages: [[UInt8]] = []
        while true {
            let head: [UInt8]
            do { head = try await connection.receive(exactly: 5) } catch let error as NetworkError {
                #expect(error.code == .endOfStream)
                #expect(try await connection.receive() == nil)
                return messages
            }
            let length = (0..<4).reduce(0) { $0 | Int(head[$1 + 1]) << ($1 * 8) }
            let message = head + (try await connection.receive(exactly: length))
            try #require(message == Self.message(head[0], length))
            messages.append(message)
        }
    }

    @Test("those of 16 tasks go out whole", arguments: StreamLink.allCases)
    func whole(link: StreamLink) async throws {
        let (near, far) = try await link.pair()
        let parser = Task { try await Self.parse(far) }
        let sent = try await withThrowingTaskGroup(of: [[UInt8]].self) { group in
            for sender in 0..<16 as Range<UInt8> {
                group.addTask { try await Self.send(near, sender, count: 40) }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        try await near.finish()
        let received = try await parser.value
        #expect(received.count == sent.count)
        for sender in 0..<16 as Range<UInt8> {
            // Those of one sender, in its order.
            let isSame = received.filter { $0[0] == sender } == sent.filter { $0[0] == sender }
            #expect(isSame)
        }
    }

    private static func send(
        _ connection: Connection<TCP>, _ sender: UInt8, count: Int
    ) async throws -> [[UInt8]] {
        var random = SplitMix64(seed: UInt64(sender))
        var sent: [[UInt8]] = []
        for round in 0..<count {
            let length = Int.random(in: 0...(round % 8 == 0 ? 200_000 : 500), using: &random)
            let message = message(sender, length)
            if round % 2 == 0 {
                try await connection.send(message)
            } else {
                try await connection.send(
                    contentsOf: [Array(message.prefix(5)), Array(message.dropFirst(5))])
            }
            sent.append(message)
        }
        return sent
    }

    @Test("cancelled ones arrive whole or not at all", arguments: StreamLink.allCases)
    func cancelled(link: StreamLink) async throws {
        let (near, far) = try await link.pair()
        let parser = Task { try await Self.parse(far) }
        let counts = try await withThrowingTaskGroup(of: (sent: Int, cancelled: Int).self) {
            group in
            for sender in 0..<16 as Range<UInt8> {
                group.addTask { try await Self.sendAndCancel(near, sender, count: 40) }
            }
            return try await group.reduce(into: (sent: 0, cancelled: 0)) {
                $0.sent += $1.sent
                $0.cancelled += $1.cancelled
            }
        }
        try await near.finish()
        let received = try await parser.value.count
        #expect(received >= counts.sent)
        #expect(received <= counts.sent + counts.cancelled)
        #expect(counts.cancelled > 0)
    }

    /// Returns how many sends returned and how many were given up, by cancellation or timeout.
    private static func sendAndCancel(
        _ connection: Connection<TCP>, _ sender: UInt8, count: Int
    ) async throws -> (sent: Int, cancelled: Int) {
        var random = SplitMix64(seed: UInt64(sender) + 100)
        var counts = (sent: 0, cancelled: 0)
        for round in 0..<count {
            let length = Int.random(in: 0...(round % 4 == 0 ? 400_000 : 500), using: &random)
            let timeout: Duration? = round % 5 == 0 ? .microseconds(300) : nil
            let message = message(sender, length)
            let call = Task { try await connection.send(message, timeout: timeout) }
            if round % 2 == 0 {
                for _ in 0..<Int.random(in: 0...20, using: &random) { await Task.yield() }
                call.cancel()
            }
            do {
                try await call.value
                counts.sent += 1
            } catch is CancellationError {
                counts.cancelled += 1
            } catch let error as NetworkError where error.code == .timedOut {
                #expect(error.stage == .send)
                counts.cancelled += 1
            }
        }
        return counts
    }
}
