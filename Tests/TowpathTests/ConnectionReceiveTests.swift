import TestSupport
import Testing
import Towpath

/// A way to receive the first `count` bytes of a stream whose first `count` bytes end in a line feed
/// that they have nowhere else.
enum ReceiveVariant: CaseIterable, CustomTestStringConvertible {
    case exactly, until, atLeast, atMost, into, chunks

    var testDescription: String { "\(self)" }

    /// The first bytes, and not one more. Those that return what there is are called until they have
    /// brought all.
    func receive(_ count: Int, from connection: Connection<TCP>) async throws -> [UInt8] {
        switch self {
        case .exactly: return try await connection.receive(exactly: count)
        case .until: return try await connection.receive(until: "\n".utf8, limit: count)
        case .atLeast:
            return try await connection.receive(atLeast: count, atMost: count) ?? []
        case .atMost:
            return try await repeated(count) { try await connection.receive(atMost: $0) }
        case .chunks:
            return try await repeated(count) { count in
                var chunks = connection.chunks(atMost: count).makeAsyncIterator()
                return try await chunks.next()
            }
        case .into:
            return try await repeated(count) { try await into($0, connection) }
        }
    }

    private func repeated(
        _ count: Int, _ receive: (Int) async throws -> [UInt8]?
    ) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count, let new = try await receive(count - bytes.count) {
            #expect(!new.isEmpty)
            bytes += new
        }
        return bytes
    }

    private func into(_ count: Int, _ connection: Connection<TCP>) async throws -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: count)
        var elements = buffer.mutableSpan
        var bytes = elements.mutableBytes
        guard let received = try await connection.receive(into: &bytes) else { return nil }
        return Array(buffer.prefix(received))
    }
}

@Suite("Receiving", .timeLimit(.minutes(1)))
struct ConnectionReceiveTests {
    static let line = Array("GET / HTTP/1.1\n".utf8)
    static let trailing = Array("trailing".utf8)

    @Test(
        "takes what lies there and leaves the bytes behind it", arguments: ReceiveVariant.allCases)
    func whole(variant: ReceiveVariant) async throws {
        let (near, far) = try Connection.pair()
        try await far.send(Self.line + Self.trailing)
        #expect(try await variant.receive(Self.line.count, from: near) == Self.line)
        try await far.finish()
        #expect(try await Streams.collect(near) == Self.trailing)
    }

    @Test(
        "puts together what comes byte by byte", arguments: ReceiveVariant.allCases,
        StreamLink.allCases)
    func byteByByte(variant: ReceiveVariant, link: StreamLink) async throws {
        let (near, far) = try await link.pair()
        let call = await Streams.parked(on: near) {
            try await variant.receive(Self.line.count, from: near)
        }
        for byte in Self.line + Self.trailing {
            try await far.send([byte])
            await Task(executorPreference: near.executor) {}.value
        }
        try await far.finish()
        #expect(try await call.value == Self.line)
        #expect(try await Streams.collect(near) == Self.trailing)
    }

    @Test("puts together what is split at any position", arguments: ReceiveVariant.allCases)
    func split(variant: ReceiveVariant) async throws {
        let bytes = Self.line + Self.trailing
        for position in 1..<bytes.count {
            let (near, far) = try Connection.pair()
            try await far.send(Array(bytes[..<position]))
            let call = await Streams.parked(on: near, turns: 3) {
                try await variant.receive(Self.line.count, from: near)
            }
            try await far.send(Array(bytes[position...]))
            try await far.finish()
            #expect(try await call.value == Self.line)
            #expect(try await Streams.collect(near) == Self.trailing)
        }
    }

    @Test("mixes the variants in any order over one stream", arguments: 0..<20 as Range<UInt64>)
    func mixed(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let lengths = (0..<40).map { _ in Int.random(in: 1...3_000, using: &random) }
        let lines = lengths.map { [UInt8](repeating: 120, count: $0 - 1) + [10] }
        let (near, far) = try Connection.pair()
        let stream = Array(lines.joined())
        let splits = (0..<30).map { _ in Int.random(in: 0...stream.count, using: &random) }.sorted()
        let sender = Task {
            for (from, to) in zip([0] + splits, splits + [stream.count]) {
                try await far.send(Array(stream[from..<to]))
            }
            try await far.finish()
        }
        for line in lines {
            let variant = ReceiveVariant.allCases.randomElement(using: &random) ?? .exactly
            Streams.expect(try await variant.receive(line.count, from: near), toBe: line)
        }
        try await sender.value
        #expect(try await near.receive() == nil)
    }

    @Test("a large transfer arrives whole", arguments: ReceiveVariant.allCases, StreamLink.allCases)
    func large(variant: ReceiveVariant, link: StreamLink) async throws {
        let bytes = [UInt8](repeating: 7, count: 2_000_000) + [10]
        let (near, far) = try await link.pair()
        let sender = Task {
            try await far.send(bytes)
            try await far.send(Self.trailing)
            try await far.finish()
        }
        Streams.expect(try await variant.receive(bytes.count, from: near), toBe: bytes)
        try await sender.value
        #expect(try await Streams.collect(near) == Self.trailing)
    }

    @Test("at least so many waits for them, and takes more if they are there")
    func atLeast() async throws {
        let (near, far) = try Connection.pair()
        try await far.send([1, 2])
        let call = await Streams.parked(on: near) {
            try await near.receive(atLeast: 3, atMost: 10)
        }
        try await far.send([3, 4, 5])
        #expect(try await call.value == [1, 2, 3, 4, 5])
        try await far.send([6, 7, 8, 9])
        #expect(try await near.receive(atLeast: 2, atMost: 3) == [6, 7, 8])
        #expect(try await near.receive(atLeast: 9, atMost: 1) == [9])
    }

    @Test("at least none waits for one, and claims no end")
    func atLeastNone() async throws {
        let (near, far) = try Connection.pair()
        let call = await Streams.parked(on: near) { try await near.receive(atLeast: 0, atMost: 1) }
        try await far.send([1, 2])
        #expect(try await call.value == [1])
        #expect(try await near.receive(atLeast: 9, atMost: 0) == [])
        #expect(try await near.receive(atLeast: 0, atMost: 10) == [2])
        try await far.finish()
        #expect(try await near.receive(atLeast: 0, atMost: 10) == nil)
    }

    @Test("what asks for no byte gets none, at once")
    func none() async throws {
        let (near, far) = try Connection.pair()
        #expect(try await near.receive(atMost: 0) == [])
        #expect(try await near.receive(exactly: 0) == [])
        #expect(try await near.receive(until: [], limit: 10) == [])
        var empty: [UInt8] = []
        var elements = empty.mutableSpan
        var bytes = elements.mutableBytes
        #expect(try await near.receive(into: &bytes) == 0)
        try await far.send([1])
        #expect(try await near.receive() == [1])
    }

    @Test("a second receive throws and does not disturb the first", arguments: StreamLink.allCases)
    func second(link: StreamLink) async throws {
        let (near, far) = try await link.pair()
        let first = await Streams.parked(on: near) { try await near.receive(exactly: 4) }
        for variant in ReceiveVariant.allCases {
            await #expect(throws: Streams.error(.receiveInProgress)) {
                try await variant.receive(2, from: near)
            }
        }
        try await far.send([1, 2])
        await Streams.settle(near)
        await #expect(throws: Streams.error(.receiveInProgress)) { try await near.receive() }
        try await far.send([3, 4])
        #expect(try await first.value == [1, 2, 3, 4])
        #expect(near.state == .ready)
    }
}
