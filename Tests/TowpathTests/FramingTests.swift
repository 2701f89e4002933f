import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("Messages over a stream", .timeLimit(.minutes(1)))
struct FramingTests {
    /// A framed connection, and a raw socket at its other end.
    private static func pair<Top: FramedProtocol>(
        _ top: Top
    ) throws -> (Connection<Top>, Connection<TCP>) {
        let (left, right) = try Streams.socketPair()
        return (try Connection(adopting: left) { top }, try Connection(adopting: right) { TCP() })
    }

    private static func bytes(of messages: [TLV.Message]) throws -> [UInt8] {
        let framing = TLV.Framing()
        var bytes: [UInt8] = []
        for message in messages { try framing.encode(message, into: &bytes) }
        return bytes
    }

    private static let messages = [
        TLV.Message(type: 1, value: []), TLV.Message(type: 0xFFFF_FFFF, value: [1]),
        TLV.Message(type: 0x0102_0304, value: Streams.pattern(300)),
    ]

    // MARK: TLV

    @Test("a TLV is type, length and value in network order, and decodes byte by byte")
    func tlv() throws {
        let framing = TLV.Framing()
        var bytes: [UInt8] = []
        try framing.encode(.init(type: 0x0102_0304, value: [9, 8]), into: &bytes)
        #expect(bytes == [1, 2, 3, 4, 0, 0, 0, 2, 9, 8])
        for count in 0..<bytes.count {
            var input = bytes[..<count]
            #expect(try framing.decode(&input) == nil)
            #expect(input.count == count)
        }
        var input = ([7, 7] + bytes + [5])[2...]
        #expect(try framing.decode(&input) == .init(type: 0x0102_0304, value: [9, 8]))
        #expect(input == [5])
        #expect(try framing.decode(&input) == nil)
    }

    @Test("a TLV with a length above the limit is refused before its value comes")
    func tlvLimit() async throws {
        let (connection, peer) = try Self.pair(TLV().maximumValueSize(4))
        try await peer.send([0, 0, 0, 1, 0, 0, 0, 4, 1, 2, 3, 4, 0, 0, 0, 1, 255, 255, 255, 255])
        expectEqual(try await connection.receive(), .init(type: 1, value: [1, 2, 3, 4]))
        for _ in 0..<2 {
            let error = await Streams.failure { try await connection.receive() }
            #expect(error?.code == .messageTooLong && error?.stage == .receive)
        }
        let error = await Streams.failure {
            try await connection.send(.init(type: 1, value: [1, 2, 3, 4, 5]))
        }
        #expect(error?.code == .messageTooLong && error?.stage == .send)
        try await connection.send(.init(type: 2, value: []))
        expectEqual(try await peer.receive(), [0, 0, 0, 2, 0, 0, 0, 0])
    }

    @Test("messages arrive however the stream is cut", arguments: 0..<8)
    func cut(seed: UInt64) async throws {
        let (connection, peer) = try Self.pair(TLV())
        let bytes = try Self.bytes(of: Self.messages)
        var random = SplitMix64(seed: seed)
        async let received = Self.collect(connection)
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = seed == 0 ? 1 : Int(random.next() % 64) + 1
            try await peer.send(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
            await Task.yield()
        }
        try await peer.finish()
        let all = try await received
        #expect(all == Self.messages)
        expectEqual(try await connection.receive(), nil)
    }

    private static func collect<Top: FramedProtocol>(
        _ connection: Connection<Top>
    ) async throws -> [Top.Framing.Receiving] {
        var all: [Top.Framing.Receiving] = []
        for try await message in connection.messages { all.append(message) }
        return all
    }

    @Test("an end within a message is an error, each time, and tells how much came")
    func endWithin() async throws {
        let (connection, peer) = try Self.pair(TLV())
        try await peer.send([0, 0, 0, 1, 0, 0])
        try await peer.finish()
        for _ in 0..<2 {
            let error = await Streams.failure { try await connection.receive() }
            #expect(error?.code == .endOfStream)
            #expect(error?.message.contains("6 bytes") == true)
        }
    }

    @Test("a receive that is cancelled or runs out of time within a message loses nothing")
    func cancelled() async throws {
        let (connection, peer) = try Self.pair(TLV())
        try await peer.send([0, 0, 0, 1, 0, 0])
        for timeout in [Duration.zero, .milliseconds(1)] {
            let error = await Streams.failure { try await connection.receive(timeout: timeout) }
            #expect(error?.code == .timedOut)
        }
        let task = Task {
            while true {
                // The one below may be first.
                do { return try await connection.receive() } catch let error as NetworkError
                    where error.code == .receiveInProgress
                {
                    await Task.yield()
                }
            }
        }
        var code: NetworkError.Code?
        while code != .receiveInProgress {
            code = await Streams.failure { try await connection.receive(timeout: .zero) }?.code
            await Task.yield()
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        try await peer.send([0, 1, 42])
        expectEqual(try await connection.receive(), .init(type: 1, value: [42]))
    }

    @Test("messages of several tasks go out whole")
    func several() async throws {
        let (connection, peer) = try Self.pair(TLV())
        let (count, size) = (20, 100_000)
        async let sending: Void = withThrowingTaskGroup { group in
            for number in 0..<count {
                group.addTask {
                    try await connection.send(
                        .init(
                            type: UInt32(number),
                            value: .init(repeating: UInt8(number), count: size)))
                }
            }
            try await group.waitForAll()
        }
        var seen: Set<UInt32> = []
        let framing = TLV.Framing()
        for _ in 0..<count {
            var input = try await peer.receive(exactly: 8 + size)[...]
            let message = try #require(try framing.decode(&input))
            seen.insert(message.type)
            let isWhole = message.value.allSatisfy { UInt32($0) == message.type }
            #expect(isWhole)
        }
        try await sending
        #expect(seen.count == count)
    }

    @Test("through TLS and a listener, which drains between messages")
    func secureAndDraining() async throws {
        let authority = try TestAuthority()
        let identity = try authority.issue("IP:127.0.0.1")
        let listener = try await Listener(on: .loopback()) { TLV { TLS(identity: identity) } }
        try await serving(listener) { connection in
            for try await message in connection.messages(untilDrain: true) {
                try await connection.send(message)
            }
        } while: {
            let client = Connection(to: listener.localEndpoint) {
                TLV { TLS().trust(anchors: [authority.certificate]) }
            }
            for message in Self.messages {
                try await client.send(message)
                expectEqual(try await client.receive(), message)
            }
            listener.drain(within: .seconds(20))
            expectEqual(try await client.receive(), nil)
            await client.close()
        }
    }

    @Test("once closed, a connection of messages says so")
    func closed() async throws {
        let (connection, peer) = try Self.pair(TLV())
        let bytes = try Self.bytes(of: Self.messages)
        try await peer.send(bytes)
        expectEqual(try await connection.receive(), Self.messages[0])
        connection.abort()
        let received = await Streams.failure { try await connection.receive() }
        #expect(received?.code == .closed)
        let sent = await Streams.failure { try await connection.send(Self.messages[0]) }
        #expect(sent?.code == .closed)
    }

    // MARK: One's own

    private struct NotANumber: Error {}

    /// Numbers as text, a line each; the last may lack its end.
    private struct Numbers: FramerProtocol {
        var count = 0

        mutating func decode(_ input: inout ArraySlice<UInt8>) throws -> Int? {
            guard let end = input.firstIndex(of: 10) else { return nil }
            let line = input[..<end]
            input = input[(end + 1)...]
            return try number(line)
        }

        mutating func decodeEnd(_ input: inout ArraySlice<UInt8>) throws -> Int? {
            defer { input = [] }
            return try number(input)
        }

        /// Each sent one carries how many there were before.
        mutating func encode(_ message: Int, into output: inout [UInt8]) throws {
            if message < 0 { throw NotANumber() }
            output += "\(count):\(message)\n".utf8
            count += 1
        }

        private func number(_ line: ArraySlice<UInt8>) throws -> Int {
            guard let number = Int(String(decoding: line, as: UTF8.self)) else {
                throw NotANumber()
            }
            return number
        }
    }

    @Test("a framer of one's own: its errors are thrown, and what it leaves is read on")
    func ownFramer() async throws {
        let (connection, peer) = try Self.pair(Framer(Numbers()).maximumMessageSize(10))
        try await peer.send("1\nx\n2\n3".utf8)
        try await peer.finish()
        expectEqual(try await connection.receive(), 1)
        await #expect(throws: NotANumber.self) { try await connection.receive() }
        expectEqual(try await connection.receive(), 2)
        expectEqual(try await connection.receive(), 3)
        expectEqual(try await connection.receive(), nil)
        try await connection.send(7)
        await #expect(throws: NotANumber.self) { try await connection.send(-1) }
        try await connection.send(8)
        expectEqual(try await peer.receive(exactly: 8), Array("0:7\n1:8\n".utf8))
    }

    @Test(
        "two connections of one framer have each their own state, and no more bytes than allowed wait"
    )
    func ownState() async throws {
        let framer = Framer(Numbers()).maximumMessageSize(10)
        for _ in 0..<2 {
            let (connection, peer) = try Self.pair(framer)
            try await connection.send(1)
            expectEqual(try await peer.receive(), Array("0:1\n".utf8))
            try await peer.send("12345678901".utf8)
            let error = await Streams.failure { try await connection.receive() }
            #expect(error?.code == .messageTooLong)
        }
    }
}
