import TestSupport
import Testing
import TowpathWire

@Suite("RFC 6455 §5.4: fragments")
struct WebSocketFragmentTests {
    @Test("the examples of §5.7")
    func examples() {
        #expect(heard(hex("81 05 48 65 6c 6c 6f")) == Heard(.text("Hello")))
        #expect(heard(hex("01 03 48 65 6c 80 02 6c 6f")) == Heard(.text("Hello")))
        #expect(
            heard(hex("89 05 48 65 6c 6c 6f 8a 05 48 65 6c 6c 6f"))
                == Heard(.ping(Array("Hello".utf8)), .pong(Array("Hello".utf8))))
        let bytes = (0..<256).map { UInt8($0) }
        #expect(heard(hex("82 7E 01 00") + bytes) == Heard(.binary(bytes)))
        let many = [UInt8](repeating: 5, count: 65_536)
        #expect(heard(hex("82 7F 00 00 00 00 00 01 00 00") + many) == Heard(.binary(many)))
    }

    @Test("control frames may come in between")
    func control() {
        #expect(
            heard(hex("02 01 01 89 01 02 00 00 8A 00 00 01 03 89 00 80 01 04"))
                == Heard(.ping([2]), .pong([]), .ping([]), .binary([1, 3, 4])))
    }

    @Test("any number of fragments, empty ones too")
    func many() {
        let bytes = (0..<1_000).map { UInt8(truncatingIfNeeded: $0) }
        let frames = frame(0x02) + bytes.flatMap { frame(0, [$0]) } + frame(0x80)
        #expect(heard(frames) == Heard(.binary(bytes)))
        #expect(heard(frame(0x02) + frame(0) + frame(0x80)) == Heard(.binary([])))
    }

    @Test(
        "a message inside another, and one that goes on but has not begun, fail with 1002",
        arguments: [
            "80 00", "00 00", "81 01 61 80 01 62", "01 01 61 81 01 62", "02 00 82 00",
            "01 00 02 00",
            "01 00 80 00 80 00", "89 00 80 00",
        ])
    func order(bytes: String) {
        #expect(heard(hex(bytes)).code == .protocolError)
    }

    @Test("each fragment of a client has its own key")
    func masks() {
        let frames =
            frame(0x01, Array("Hel".utf8), key: 0x0102_0304) + frame(0x89, [7], key: 0xA0B0_C0D0)
            + frame(0x80, Array("lo".utf8), key: 0xFFEE_DDCC)
        #expect(heard(frames, by: .server) == Heard(.ping([7]), .text("Hello")))
    }

    @Test("what is sent in fragments is read as one message")
    func sent() {
        var client = WebSocketSession(.client)
        var output: [UInt8] = []
        for (index, part) in ["He", "", "llo"].enumerated() {
            Array(part.utf8).withUnsafeBytes {
                client.append(
                    index == 0 ? .text : .continuation, $0, isFinal: index == 2,
                    compressing: false, maskKey: 0x0101_0101, to: &output)
            }
        }
        let expected = frame(0x01, [0x48, 0x65], key: 0x0101_0101) + frame(0, key: 0x0101_0101)
        #expect(output == expected + frame(0x80, Array("llo".utf8), key: 0x0101_0101))
        #expect(heard(output, by: .server) == Heard(.text("Hello")))
    }

    @Test("an input is taken only as far as the event needs, then there is the rest")
    func pulled() throws {
        let bytes = hex("81 01 61 89 00 81 01 62 81")
        var session = WebSocketSession(.client)
        var seen: [(WebSocketSession.Event?, Int)] = []
        try bytes.withUnsafeBytes { bytes throws in
            var rest = bytes
            for _ in 0..<5 { seen.append((try session.next(&rest), rest.count)) }
        }
        #expect(seen.map(\.0) == [.text("a"), .ping([]), .text("b"), nil, nil])
        #expect(seen.map(\.1) == [6, 4, 1, 0, 0])
    }

    @Test("messages of all kinds, in random frames and pieces", arguments: 0..<10)
    func random(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var expected = Heard()
        var (down, up): ([UInt8], [UInt8]) = ([], [])
        func add(_ first: UInt8, _ payload: [UInt8]) {
            down += frame(first, payload)
            up += frame(first, payload, key: random.next())
        }
        for _ in 0..<15 {
            let text = random.text(of: ["é", "a", "😀", "word "], upTo: 60)
            let isText = Bool.random(using: &random)
            var rest = Array(text.utf8)[...]
            var opcode: UInt8 = isText ? 1 : 2
            while Bool.random(using: &random) {
                let part = rest.prefix(Int.random(in: 0...(rest.count + 1), using: &random))
                add(opcode, Array(part))
                rest = rest.dropFirst(part.count)
                opcode = 0
                if Bool.random(using: &random) {
                    add(0x89, [9])
                    expected.events.append(.ping([9]))
                }
            }
            add(0x80 | opcode, Array(rest))
            expected.events.append(isText ? .text(text) : .binary(Array(text.utf8)))
        }
        #expect(heard(down) == expected)
        #expect(heard(up, by: .server) == expected)
    }
}

@Suite("RFC 6455 §10.4: limits of frames and messages")
struct WebSocketLimitTests {
    @Test("a message of the largest size passes, one more byte fails with 1009, before it comes")
    func message() {
        let limits = WebSocketSession.Limits(message: 10)
        let ten = [UInt8](repeating: 1, count: 10)
        #expect(heard(frame(0x82, ten), limits: limits) == Heard(.binary(ten)))
        #expect(heard([0x82, 11], limits: limits) == Heard(failing: .messageTooBig))
        #expect(
            heard(frame(2, ten) + frame(0x80), limits: limits) == Heard(.binary(ten)))
        #expect(
            heard(frame(2, ten) + [0x80, 1], limits: limits) == Heard(failing: .messageTooBig))
        #expect(
            heard(frame(2, ten) + frame(0x89, ten) + frame(0x80), limits: limits)
                == Heard(.ping(ten), .binary(ten)))
        #expect(
            heard(frame(0x82, ten) + frame(0x82, ten), limits: limits)
                == Heard(.binary(ten), .binary(ten)))
    }

    @Test("a limit of nothing passes empty messages")
    func nothing() throws {
        let limits = WebSocketSession.Limits(message: 0)
        #expect(heard(hex("81 00"), limits: limits) == Heard(.text("")))
        #expect(heard(hex("81 01"), limits: limits) == Heard(failing: .messageTooBig))
        let deflate = try Sample.deflate()
        #expect(heard(hex("C1 01 00"), limits: limits, deflate: deflate) == Heard(.text("")))
        #expect(
            heard(hex("C1 07 F2 48 CD C9 C9 07 00"), limits: limits, deflate: deflate)
                == Heard(failing: .messageTooBig))
    }

    @Test("a frame's limit counts what comes, compressed or not, and no control frames")
    func frames() throws {
        let limits = WebSocketSession.Limits(message: 100, frame: 5)
        let five = [UInt8](repeating: 1, count: 5)
        let both = frame(2, five) + frame(0x80, five)
        #expect(heard(both, limits: limits) == Heard(.binary(five + five)))
        #expect(heard([0x82, 6], limits: limits) == Heard(failing: .messageTooBig))
        #expect(heard(frame(0x89, five + five), limits: limits) == Heard(.ping(five + five)))
        let deflate = try Sample.deflate()
        #expect(
            heard(hex("41 03 F2 48 CD 80 04 C9 C9 07 00"), limits: limits, deflate: deflate)
                == Heard(.text("Hello")))
        #expect(
            heard([0xC1, 6], limits: limits, deflate: deflate) == Heard(failing: .messageTooBig))
    }

    @Test("no limit at all is no trap")
    func unlimited() throws {
        let limits = WebSocketSession.Limits(message: .max)
        let deflate = try Sample.deflate()
        #expect(
            heard(hex("C1 07 F2 48 CD C9 C9 07 00"), limits: limits, deflate: deflate)
                == Heard(.text("Hello")))
    }
}
