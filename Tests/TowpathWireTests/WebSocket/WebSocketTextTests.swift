import Testing
import TowpathWire

@Suite("RFC 6455 §8.1: text is UTF-8")
struct WebSocketTextTests {
    @Test(
        "BR-034 UTF-8: a character may be cut into frames",
        arguments: [
            ("01 01 C3 80 01 A9", "é"), ("01 02 F0 9F 00 01 98 80 01 80", "\u{1F600}"),
            ("01 00 00 01 F0 00 01 9F 00 00 00 01 98 00 01 80 80 00", "\u{1F600}"),
            ("81 00", ""), ("01 00 80 00", ""), ("81 04 F4 8F BF BF", "\u{10FFFF}"),
            ("81 03 EF BB BF", "\u{FEFF}"), ("81 01 00", "\u{0}"), ("81 03 EF BF BF", "\u{FFFF}"),
        ])
    func right(bytes: String, text: String) {
        let expected = heard(hex(bytes))
        #expect(expected == Heard(.text(text)))
        #expect(expected.events.first?.utf8 == Array(text.utf8))
    }

    @Test(
        "BR-034 UTF-8: what is none fails with 1007",
        arguments: [
            "81 01 C3", "81 02 C0 80", "81 03 ED A0 80", "81 04 F4 90 80 80", "88 04 03 E8 C3 28",
            "88 03 03 E8 C3", "88 05 03 E8 ED A0 80", "01 01 C3 80 00", "01 01 C3 80 01 28",
            "01 01 C3 80 02 A9 C3", "81 01 80", "81 01 FF", "01 02 ED A0 80 01 80",
        ])
    func wrong(bytes: String) {
        #expect(heard(hex(bytes)) == Heard(failing: .invalidFramePayloadData))
        #expect(heard(hex(bytes + " 81 02 68 69")) == Heard(failing: .invalidFramePayloadData))
    }

    @Test("BR-034 UTF-8: a client's masked frames are judged alike")
    func server() {
        let cut = masked(hex("01 02 F0 9F")) + masked(hex("00 01 98")) + masked(hex("80 01 80"))
        #expect(heard(cut, by: .server) == Heard(.text("\u{1F600}")))
        let wrong = masked(hex("81 03 ED A0 80"))
        #expect(heard(wrong, by: .server) == Heard(failing: .invalidFramePayloadData))
    }

    @Test(
        "BR-034 UTF-8: a deflated text is judged behind the inflater",
        arguments: ["é", "\u{1F600}", "aé\u{1F600}"])
    func deflated(text: String) throws {
        let deflate = try Sample.deflate()
        var session = WebSocketSession(
            .server, deflate: deflate, compression: .init(windowBits: 15))
        let whole = session.frame(.text(text))
        #expect(heard(whole, deflate: deflate) == Heard(.text(text)))
        let payload = Array(whole[2...])
        for split in 0...payload.count {
            let two = frame(0x41, Array(payload[..<split])) + frame(0x80, Array(payload[split...]))
            #expect(heard(two, deflate: deflate) == Heard(.text(text)))
        }
        // Blocks that are not compressed, each in a frame of its own.
        let blocks = Array(text.utf8).map { [0, 1, 0, 0xFE, 0xFF, $0] }
        var frames: [UInt8] = []
        for (index, block) in blocks.enumerated() {
            frames += frame(index == 0 ? 0x41 : 0, block)
        }
        frames += frame(0x80, [0])
        #expect(heard(frames, deflate: deflate) == Heard(.text(text)))
    }

    @Test("BR-034 UTF-8: a deflated text that is none fails with 1007, bytes do not")
    func deflatedWrong() throws {
        let deflate = try Sample.deflate()
        for payload in ["00 01 00 FE FF C3 00", "00 02 00 FD FF C0 80 00"] {
            let bytes = hex(payload)
            #expect(
                heard(frame(0xC1, bytes), deflate: deflate)
                    == Heard(failing: .invalidFramePayloadData))
            let message = Array(bytes[5..<bytes.count - 1])
            #expect(heard(frame(0xC2, bytes), deflate: deflate) == Heard(.binary(message)))
        }
    }

    @Test("bytes that are no UTF-8 pass as bytes")
    func binary() {
        #expect(heard(hex("82 02 C3 28")) == Heard(.binary([0xC3, 0x28])))
        #expect(heard(hex("89 01 FF 8A 01 C0")) == Heard(.ping([0xFF]), .pong([0xC0])))
    }

    @Test("a wrong text fails as soon as it comes, not at its end")
    func early() {
        var session = WebSocketSession(.client)
        #expect(session.hear(hex("01 05 61 62 C0")) == Heard(failing: .invalidFramePayloadData))
        var whole = WebSocketSession(.client)
        #expect(whole.hear(hex("81 7E 01 00 ED A0")) == Heard(failing: .invalidFramePayloadData))
    }
}

extension WebSocketSession.Event {
    fileprivate var utf8: [UInt8]? {
        if case .message(let message) = self { message.bytes } else { nil }
    }
}
