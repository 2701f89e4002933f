import Testing
import Towpath

@Suite("Receiving up to an end, a limit or a delimiter", .timeLimit(.minutes(1)))
struct ConnectionReceiveLimitTests {
    @Test("the end of the stream is told by every call, every time", arguments: StreamLink.allCases)
    func endRepeats(link: StreamLink) async throws {
        let (near, far) = try await link.pair()
        try await far.send([1])
        try await far.finish()
        #expect(try await near.receive() == [1])
        for _ in 0..<3 {
            #expect(try await near.receive() == nil)
            #expect(try await near.receive(atLeast: 2, atMost: 3) == nil)
            #expect(try await Streams.collect(near).isEmpty)
            var buffer: [UInt8] = [0]
            var elements = buffer.mutableSpan
            var bytes = elements.mutableBytes
            #expect(try await near.receive(into: &bytes) == nil)
            await #expect(throws: Streams.error(.endOfStream)) {
                try await near.receive(exactly: 1)
            }
            await #expect(throws: Streams.error(.endOfStream)) {
                try await near.receive(until: [10], limit: 9)
            }
        }
        #expect(near.state == .ready)
    }

    @Test("an end before the exact count keeps the bytes readable", arguments: StreamLink.allCases)
    func endBeforeCount(link: StreamLink) async throws {
        let (near, far) = try await link.pair()
        try await far.send([1, 2, 3])
        try await far.finish()
        await #expect(throws: Streams.error(.endOfStream)) { try await near.receive(exactly: 4) }
        await #expect(throws: Streams.error(.endOfStream)) { try await near.receive(exactly: 5) }
        #expect(try await near.receive(exactly: 2) == [1, 2])
        #expect(try await near.receive(atLeast: 9, atMost: 10) == [3])
        #expect(try await near.receive() == nil)
    }

    @Test("an end while the call waits keeps the bytes readable")
    func endWhileWaiting() async throws {
        let (near, far) = try Connection.pair()
        try await far.send([1, 2, 3])
        let call = await Streams.parked(on: near) { try await near.receive(exactly: 4) }
        try await far.finish()
        #expect(await Streams.failure { try await call.value } == Streams.error(.endOfStream))
        #expect(try await near.receive() == [1, 2, 3])
    }

    @Test("an end before the delimiter keeps the bytes readable")
    func endBeforeDelimiter() async throws {
        let (near, far) = try Connection.pair()
        try await far.send([1, 2, 13])
        try await far.finish()
        await #expect(throws: Streams.error(.endOfStream)) {
            try await near.receive(until: [13, 10], limit: 99)
        }
        #expect(try await near.receive(until: [13], limit: 99) == [1, 2, 13])
        #expect(try await near.receive() == nil)
    }

    @Test("a delimiter within the limit is found, its last byte included")
    func limitReached() async throws {
        let (near, far) = try Connection.pair()
        try await far.send([1, 2, 13, 10, 5])
        #expect(try await near.receive(until: [13, 10], limit: 4) == [1, 2, 13, 10])
        #expect(try await near.receive() == [5])
    }

    @Test("a delimiter that ends behind the limit is beyond it", arguments: [0, 1, 2, 3])
    func limitExceeded(limit: Int) async throws {
        let (near, far) = try Connection.pair()
        try await far.send([1, 2, 13, 10, 5])
        for _ in 0..<2 {
            await #expect(throws: Streams.error(.limitExceeded)) {
                try await near.receive(until: [13, 10], limit: limit)
            }
        }
        #expect(try await near.receive(until: [13, 10], limit: 4) == [1, 2, 13, 10])
        #expect(try await near.receive() == [5])
    }

    @Test("what a limit left in the buffer does not count as a find of a smaller limit")
    func limitBelowLeftovers() async throws {
        let (near, far) = try Connection.pair()
        try await far.send(Array("abcdefgh\n".utf8))
        await #expect(throws: Streams.error(.limitExceeded)) {
            try await near.receive(until: [0], limit: 9)
        }
        await #expect(throws: Streams.error(.limitExceeded)) {
            try await near.receive(until: [10], limit: 5)
        }
        #expect(try await near.receive(until: [10], limit: 9) == Array("abcdefgh\n".utf8))
    }

    @Test("reading for a limit takes no byte behind it from the kernel")
    func limitReadsNoFurther() async throws {
        let (near, peer) = try StreamPeer.joined()
        try await peer.send([UInt8](repeating: 1, count: 100))
        await #expect(throws: Streams.error(.limitExceeded)) {
            try await near.receive(until: [0], limit: 10)
        }
        #expect(try await near.receive(atMost: 1_000).map(\.count) == 10)
        #expect(try await near.receive(atMost: 1_000).map(\.count) == 90)
    }

    @Test(
        "a delimiter that straddles reads is found", arguments: ["\r\n\r\n", "aab", "abab", "aaaa"])
    func straddling(delimiter: String) async throws {
        // Beginnings of the delimiter in front of it make every false start.
        let end = Array(delimiter.utf8)
        let message = Array(end.dropLast()) + Array("-".utf8) + Array(end.dropLast(2)) + [0] + end
        let trailing = Array("xyz".utf8)
        for split in 1..<message.count {
            for second in split..<message.count {
                let (near, far) = try Connection.pair()
                try await far.send(Array(message[..<split]))
                let call = await Streams.parked(on: near, turns: 3) {
                    try await near.receive(until: end, limit: 100)
                }
                try await far.send(Array(message[split..<second]))
                await Task(executorPreference: near.executor) {}.value
                try await far.send(Array(message[second...]) + trailing)
                #expect(try await call.value == message)
                #expect(try await near.receive(atMost: 3) == trailing)
            }
        }
    }

    @Test("a delimiter may be any sequence of bytes")
    func sequences() async throws {
        let (near, far) = try Connection.pair()
        try await far.send("one, two; ".utf8)
        #expect(try await near.receive(until: ", ".utf8, limit: 99) == Array("one, ".utf8))
        #expect(try await near.receive(until: Set("; ".utf8.prefix(1)), limit: 9).last == 59)
        #expect(try await near.receive(until: repeatElement(32, count: 1), limit: 99) == [32])
    }

    @Test("bytes in front of a reset are delivered, then the reset, every time")
    func reset() async throws {
        let (near, peer) = try await Streams.connected()
        try await peer.send([1, 2, 3])
        peer.reset()
        await #expect(throws: Streams.error(.connectionReset)) {
            try await near.receive(exactly: 4)
        }
        #expect(try await near.receive() == [1, 2, 3])
        for variant in ReceiveVariant.allCases {
            await #expect(throws: Streams.error(.connectionReset)) {
                try await variant.receive(1, from: near)
            }
        }
        #expect(near.state == .failed(Streams.error(.connectionReset)))
    }
}
