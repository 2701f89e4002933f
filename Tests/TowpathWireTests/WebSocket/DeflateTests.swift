import TestSupport
import Testing
import TowpathWire

/// What a deflater says of a message.
private func deflated(_ message: [UInt8], by deflater: inout Deflater) -> [UInt8] {
    var output: [UInt8] = [0xAA]
    message.withUnsafeBytes { deflater.deflate($0, into: &output) }
    #expect(output.first == 0xAA)
    return Array(output.dropFirst())
}

private let tail: [UInt8] = [0, 0, 0xFF, 0xFF]

/// Text that repeats itself near and far, then bytes that do not.
private func sample(_ count: Int, seed: UInt64) -> [UInt8] {
    var random = SplitMix64(seed: seed)
    var bytes: [UInt8] = []
    while bytes.count < count {
        let distance = Int.random(in: 0...bytes.count, using: &random)
        if Bool.random(using: &random), distance > 0 {
            bytes += bytes[(bytes.count - distance)...].prefix(
                Int.random(in: 3...300, using: &random))
        } else {
            bytes += (0..<20).map { _ in UInt8.random(in: 0...255, using: &random) }
        }
    }
    return Array(bytes.prefix(count))
}

@Suite("RFC 1951: deflate")
struct DeflateTests {
    private static let sizes = [0, 0, 1, 2, 63, 64, 65, 1_000, 0, 40_000, 65_536, 3]

    @Test("messages with all window sizes, context kept", arguments: 8...15, [1, 9])
    func roundTrip(windowBits: Int, level: Int) throws {
        var deflater = try Deflater(windowBits: windowBits, level: level)
        var inflater = try Inflater(windowBits: windowBits)
        for (index, size) in Self.sizes.enumerated() {
            let message = sample(size, seed: UInt64(index))
            let compressed = deflated(message, by: &deflater)
            #expect(!compressed.isEmpty)
            var output: [UInt8] = []
            try inflater.inflate(compressed + tail, into: &output, limit: size)
            #expect(output == message)
        }
    }

    @Test("messages that forget the others", arguments: [8, 9, 15])
    func reset(windowBits: Int) throws {
        var deflater = try Deflater(windowBits: windowBits, level: 6)
        var inflater = try Inflater(windowBits: windowBits)
        let message = sample(1_000, seed: 1)
        let first = deflated(message, by: &deflater)
        deflater.reset()
        #expect(deflated(message, by: &deflater) == first)
        #expect(deflated(message, by: &deflater).count < first.count || windowBits < 10)
        for _ in 0..<2 {
            var output: [UInt8] = []
            try inflater.inflate(first + tail, into: &output, limit: .max)
            #expect(output == message)
            inflater.reset()
        }
    }

    @Test("a context that was forgotten cannot be referred to")
    func forgotten() throws {
        var deflater = try Deflater(windowBits: 15, level: 6)
        _ = deflated(Array("Hello, hello, hello".utf8), by: &deflater)
        let second = deflated(Array("Hello, hello, hello".utf8), by: &deflater)
        var inflater = try Inflater(windowBits: 15)
        var output: [UInt8] = []
        #expect(throws: Inflater.Failure.malformed) {
            try inflater.inflate(second + tail, into: &output, limit: 100)
        }
    }

    @Test("a message that is appended lies behind what was there, and counts with it")
    func appended() throws {
        var deflater = try Deflater(windowBits: 15, level: 6)
        let compressed = deflated([1, 2, 3], by: &deflater) + tail
        var output: [UInt8] = [9, 9]
        var inflater = try Inflater(windowBits: 15)
        try inflater.inflate(compressed, into: &output, limit: 5)
        #expect(output == [9, 9, 1, 2, 3])
        inflater.reset()
        #expect(throws: Inflater.Failure.tooLarge) {
            try inflater.inflate(compressed, into: &output, limit: 7)
        }
        #expect(output.count <= 8)
    }

    @Test("the input may come in pieces of any size", arguments: [1, 2, 3, 100, 10_000])
    func pieces(size: Int) throws {
        let message = sample(20_000, seed: 7)
        var deflater = try Deflater(windowBits: 15, level: 6)
        var rest = (deflated(message, by: &deflater) + tail)[...]
        var inflater = try Inflater(windowBits: 15)
        var output: [UInt8] = []
        while !rest.isEmpty {
            try inflater.inflate(Array(rest.prefix(size)), into: &output, limit: message.count)
            rest = rest.dropFirst(size)
        }
        #expect(output == message)
    }

    @Test(
        "the limit is passed exactly, and not by a byte",
        arguments: [1, 127, 128, 1_023, 1_024, 1_025, 65_535, 65_536, 65_537, 200_000])
    func limit(size: Int) throws {
        for message in [[UInt8](repeating: 0, count: size), sample(size, seed: 3)] {
            var deflater = try Deflater(windowBits: 15, level: 6)
            let compressed = deflated(message, by: &deflater) + tail
            var inflater = try Inflater(windowBits: 15)
            var output: [UInt8] = []
            try inflater.inflate(compressed, into: &output, limit: size)
            #expect(output == message)
            inflater.reset()
            output = []
            #expect(throws: Inflater.Failure.tooLarge) {
                try inflater.inflate(compressed, into: &output, limit: size - 1)
            }
            #expect(output.count == size)
        }
    }

    @Test("without a limit there is none")
    func unlimited() throws {
        var deflater = try Deflater(windowBits: 15, level: 6)
        let compressed = deflated([1, 2, 3], by: &deflater) + tail
        var inflater = try Inflater(windowBits: 15)
        var output: [UInt8] = []
        try inflater.inflate(compressed, into: &output, limit: .max)
        #expect(output == [1, 2, 3])
    }

    @Test("the last block of a stream may be followed by more", arguments: [15, 8])
    func finalBlocks(windowBits: Int) throws {
        let hello = hex("F3 48 CD C9 C9 07 00")
        var inflater = try Inflater(windowBits: windowBits)
        var output: [UInt8] = []
        // The same again, and a copy of what came before it.
        try inflater.inflate(
            hello + hello + hex("F2 00 11 00 00") + [0, 0xFF, 0xFF], into: &output, limit: 100)
        #expect(output == Array("HelloHelloHello".utf8))
    }

    @Test(
        "garbage is malformed",
        arguments: [
            "07", "FF FF", "F2 48 CD C9 C9 07 00 01 00 FF FE", "00 05 00 FA FE 48 65 6C 6C 6F",
            "F2 02 11 00", "04 FF FF FF FF FF FF FF FF",
        ])
    func garbage(bytes: String) throws {
        var inflater = try Inflater(windowBits: 15)
        var output: [UInt8] = []
        #expect(throws: Inflater.Failure.malformed) {
            try inflater.inflate(hex(bytes), into: &output, limit: 1_000)
            try inflater.inflate(tail, into: &output, limit: 1_000)
        }
    }

    @Test("what points back further than the window is malformed")
    func window() throws {
        let block = sample(400, seed: 11)
        var deflater = try Deflater(windowBits: 9, level: 9)
        var wide = try Deflater(windowBits: 12, level: 9)
        var small = try Inflater(windowBits: 8)
        var output: [UInt8] = []
        try small.inflate(
            deflated(block + block, by: &deflater) + tail, into: &output, limit: 1_000)
        #expect(output == block + block)
        small.reset()
        output = []
        let compressed = deflated(block, by: &wide) + tail + deflated(block, by: &wide) + tail
        #expect(throws: Inflater.Failure.malformed) {
            for byte in compressed {
                try small.inflate([byte], into: &output, limit: 1_000)
            }
        }
    }
}

@Suite("RFC 6455 §10.4: what inflates to more than there is room for")
struct InflateLimitTests {
    @Test(
        "BR-040 limit of 16,777,216: so many bytes pass, one more fails with 1009, none is cut off",
        .disabled(if: isSanitized, "a sanitizer takes minutes for 40 million bytes"))
    func sixteenMegabytes() throws {
        let deflate = try Sample.deflate()
        let limit = 16_777_216
        for (count, passes) in [(limit, true), (limit + 1, false)] {
            var deflater = try Deflater(windowBits: 15, level: 6)
            let message = [UInt8](repeating: 1, count: count)
            let compressed = deflated(message, by: &deflater)
            #expect((16_000..<17_000).contains(compressed.count))
            var session = WebSocketSession(.client, deflate: deflate)
            let heard = session.hear(frame(0xC2, compressed))
            if passes {
                #expect(heard == Heard(.binary(message)))
            } else {
                #expect(heard == Heard(failing: .messageTooBig))
            }
        }
    }

    @Test("BR-040 limit of 128: 4,096 zeros in some 22 bytes fail with 1009, 128 pass")
    func small() throws {
        let deflate = try Sample.deflate()
        var deflater = try Deflater(windowBits: 15, level: 6)
        let compressed = deflated([UInt8](repeating: 0, count: 4_096), by: &deflater)
        #expect(compressed.count < 30)
        let limits = WebSocketSession.Limits(message: 128)
        #expect(
            heard(frame(0xC2, compressed), limits: limits, deflate: deflate)
                == Heard(failing: .messageTooBig))
        deflater.reset()
        let zeros = [UInt8](repeating: 0, count: 128)
        let fitting = frame(0xC2, deflated(zeros, by: &deflater))
        #expect(heard(fitting, limits: limits, deflate: deflate) == Heard(.binary(zeros)))
        deflater.reset()
        let more = frame(0xC2, deflated(zeros + [0], by: &deflater))
        #expect(
            heard(more, limits: limits, deflate: deflate) == Heard(failing: .messageTooBig))
    }

    @Test(
        "BR-040 a thousand fragments, each below the limit, fail with 1009 once they are above it")
    func fragments() throws {
        let fragment = [UInt8](repeating: 1, count: 100)
        let limits = WebSocketSession.Limits(message: 50_000)
        let plain = frame(0x02, fragment) + (0..<1_000).flatMap { _ in frame(0x00, fragment) }
        #expect(heard(plain, limits: limits) == Heard(failing: .messageTooBig))

        var deflater = try Deflater(windowBits: 15, level: 6)
        var compressed: [UInt8] = []
        for index in 0..<1_000 {
            compressed += frame(index == 0 ? 0x42 : 0, deflated(fragment, by: &deflater) + tail)
        }
        var session = WebSocketSession(.client, limits: limits, deflate: try Sample.deflate())
        #expect(session.hear(compressed) == Heard(failing: .messageTooBig))
    }

    @Test("BR-040 a gigabyte of zeros takes no more memory than the limit")
    func gigabyte() throws {
        var deflater = try Deflater(windowBits: 15, level: 9)
        let zeros = [UInt8](repeating: 0, count: 262_144)
        var inflater = try Inflater(windowBits: 15)
        let limit = 1_048_576
        var output: [UInt8] = []
        var pieceCount = 0
        #expect(throws: Inflater.Failure.tooLarge) {
            for _ in 0..<4_096 {
                let piece = deflated(zeros, by: &deflater) + tail
                try inflater.inflate(piece, into: &output, limit: limit)
                pieceCount += 1
            }
        }
        #expect(pieceCount == 4)
        #expect(output.count == limit + 1)
        #expect(output.capacity <= 3 * limit)
    }

    @Test("BR-040 a message in one frame stops the session at the limit, though all of it is there")
    func oneFrame() throws {
        var deflater = try Deflater(windowBits: 15, level: 9)
        let zeros = [UInt8](repeating: 0, count: 1_048_576)
        let piece = deflated(zeros, by: &deflater) + tail
        // 1 GB: the same megabyte again and again.
        let gigabyte = (0..<1_024).flatMap { _ in piece }
        var session = WebSocketSession(
            .client, limits: .init(message: 2_000_000), deflate: try Sample.deflate())
        #expect(session.hear(frame(0xC2, gigabyte)) == Heard(failing: .messageTooBig))
    }

    @Test("a bound on expansion is kept, from 64 KiB on")
    func expansion() throws {
        let deflate = try Sample.deflate()
        var deflater = try Deflater(windowBits: 15, level: 6)
        let bounded = PermessageDeflate.Configuration(windowBits: 15, maximumExpansion: 100)
        let small = [UInt8](repeating: 0, count: 65_536)
        let frames = frame(0xC2, deflated(small, by: &deflater))
        #expect(heard(frames, deflate: deflate, compression: bounded) == Heard(.binary(small)))
        deflater.reset()
        let large = frame(0xC2, deflated(small + small, by: &deflater))
        #expect(heard(large, deflate: deflate) == Heard(.binary(small + small)))
        #expect(
            heard(large, deflate: deflate, compression: bounded) == Heard(failing: .messageTooBig))
    }
}
