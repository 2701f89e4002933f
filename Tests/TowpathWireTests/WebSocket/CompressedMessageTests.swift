import TestSupport
import Testing
import TowpathWire

private let hello = "F2 48 CD C9 C9 07 00"

@Suite("RFC 7692 §7.2: compressed messages")
struct CompressedMessageTests {
    private let deflate: PermessageDeflate

    init() throws { deflate = try Sample.deflate() }

    private func heard(
        _ text: String, sourceLocation: SourceLocation = #_sourceLocation
    ) -> Heard {
        TowpathWireTests.heard(hex(text), deflate: deflate, sourceLocation: sourceLocation)
    }

    @Test(
        "the examples of §7.2.3",
        arguments: [
            "C1 07 \(hello)", "41 03 F2 48 CD 80 04 C9 C9 07 00",
            "C1 0B 00 05 00 FA FF 48 65 6C 6C 6F 00", "C1 08 F3 48 CD C9 C9 07 00 00",
            "C1 0D F2 48 05 00 00 00 FF FF CA C9 C9 07 00",
        ])
    func examples(bytes: String) {
        #expect(heard(bytes) == Heard(.text("Hello")))
        // The state behind each of them is that behind any other.
        #expect(heard("\(bytes) C1 05 F2 00 11 00 00") == Heard(.text("Hello"), .text("Hello")))
        #expect(heard("\(bytes) C1 07 \(hello)") == Heard(.text("Hello"), .text("Hello")))
    }

    @Test("a second message refers to the first one, unless the context is forgotten")
    func context() throws {
        let both = "C1 07 \(hello) C1 05 F2 00 11 00 00"
        #expect(heard(both) == Heard(.text("Hello"), .text("Hello")))
        let forgetful = try Sample.deflate("permessage-deflate; server_no_context_takeover")
        #expect(
            TowpathWireTests.heard(hex(both), deflate: forgetful)
                == Heard(.text("Hello"), failing: .invalidFramePayloadData))
        let independent = hex("C1 07 \(hello) C1 07 \(hello)")
        #expect(
            TowpathWireTests.heard(independent, deflate: forgetful)
                == Heard(.text("Hello"), .text("Hello")))
    }

    @Test("the other direction's context is its own")
    func direction() throws {
        let deflate = try Sample.deflate("permessage-deflate; client_no_context_takeover")
        let both = hex("C1 07 \(hello) C1 05 F2 00 11 00 00")
        #expect(
            TowpathWireTests.heard(both, deflate: deflate)
                == Heard(.text("Hello"), .text("Hello")))
        let toServer = masked(hex("C1 07 \(hello)")) + masked(hex("C1 05 F2 00 11 00 00"))
        #expect(
            TowpathWireTests.heard(toServer, by: .server, deflate: deflate)
                == Heard(.text("Hello"), failing: .invalidFramePayloadData))
    }

    @Test(
        "what is no deflate fails with 1007",
        arguments: ["C1 01 FF", "C2 02 FF FF", "C1 05 F2 00 11 00 00", "C2 05 00 05 00 FA FE"])
    func garbage(bytes: String) {
        #expect(heard(bytes) == Heard(failing: .invalidFramePayloadData))
    }

    @Test(
        "a message that ends in the middle of a block fails with 1007",
        arguments: ["C1 01 F2", "C1 04 F2 48 CD C9", "41 02 F2 48 80 00", "C1 03 00 05 00"])
    func cut(bytes: String) {
        #expect(heard(bytes) == Heard(failing: .invalidFramePayloadData))
    }

    @Test(
        "a message whose sender left its end in, or closed the stream, is read, and so is the next",
        arguments: ["C1 0B \(hello) 00 00 FF FF", "C1 07 F3 48 CD C9 C9 07 00"])
    func lenient(bytes: String) {
        #expect(heard(bytes) == Heard(.text("Hello")))
        #expect(heard("\(bytes) C1 07 \(hello)") == Heard(.text("Hello"), .text("Hello")))
    }

    @Test("what is left in front of a limit does not hide what exceeds it")
    func pending() {
        let limits = WebSocketSession.Limits(message: 4)
        #expect(
            TowpathWireTests.heard(hex("C1 07 \(hello)"), limits: limits, deflate: deflate)
                == Heard(failing: .messageTooBig))
    }

    @Test(
        "BR-043 empty messages: each form of them is an empty text",
        arguments: ["C1 01 00", "C1 00", "41 00 80 01 00", "41 01 00 80 00", "41 00 80 00"])
    func empty(bytes: String) {
        #expect(heard(bytes) == Heard(.text("")))
        #expect(heard("\(bytes) \(bytes)") == Heard(.text(""), .text("")))
        #expect(heard("\(bytes) C1 07 \(hello)") == Heard(.text(""), .text("Hello")))
        #expect(
            heard("C1 07 \(hello) \(bytes) C1 05 F2 00 11 00 00")
                == Heard(.text("Hello"), .text(""), .text("Hello")))
    }

    @Test(
        "BR-043 empty messages: what is sent can be read, first, later and twice",
        arguments: [9, 15])
    func sendEmpty(bits: Int) throws {
        let deflate = try Sample.deflate("permessage-deflate; server_max_window_bits=\(bits)")
        var session = WebSocketSession(
            .server, deflate: deflate, compression: .init(windowBits: 15))
        var inflater = try Inflater(windowBits: bits)
        for text in ["", "Hello", "", "", "Hello", ""] {
            let frame = session.frame(.text(text))
            #expect(frame[0] == 0xC1)
            #expect(frame.count == 2 + Int(frame[1]))
            #expect(frame[1] > 0)
            if text.isEmpty { #expect(frame == [0xC1, 1, 0]) }
            var output: [UInt8] = []
            try inflater.inflate(frame[2...] + [0, 0, 0xFF, 0xFF], into: &output, limit: 100)
            #expect(output == Array(text.utf8))
        }
    }

    @Test("messages below the least size go as they are, in between the others")
    func minimumSize() {
        var server = WebSocketSession(
            .server, deflate: deflate, compression: .init(windowBits: 15, minimumSize: 3))
        var client = WebSocketSession(.client, deflate: deflate)
        for (text, first) in [("abc", 0xC1), ("ab", 0x81), ("", 0x81), ("abcd", 0xC1)] {
            let frame = server.frame(.text(text))
            #expect(frame[0] == UInt8(first))
            #expect(client.hear(frame) == Heard(.text(text)))
        }
        var plain = WebSocketSession(.server, compression: .init(windowBits: 15))
        #expect(plain.frame(.text("abc")) == frame(0x81, Array("abc".utf8)))
    }

    @Test("a message in several frames is compressed as one, marked in the first of them")
    func fragments() throws {
        for offer in ["permessage-deflate", "permessage-deflate; server_no_context_takeover"] {
            let deflate = try Sample.deflate(offer)
            var server = WebSocketSession(.server, deflate: deflate)
            var client = WebSocketSession(.client, deflate: deflate)
            for _ in 0..<2 {
                var sent: [[UInt8]] = []
                for (index, part) in ["Hello, ", "", "hello, hello"].enumerated() {
                    var output: [UInt8] = []
                    Array(part.utf8).withUnsafeBytes {
                        server.append(
                            index == 0 ? .text : .continuation, $0, isFinal: index == 2,
                            compressing: true, maskKey: nil, to: &output)
                    }
                    sent.append(output)
                }
                #expect(sent.map(\.first) == [0x41, 0x00, 0x80])
                #expect(client.hear(sent) == Heard(.text("Hello, hello, hello")))
            }
        }
    }

    @Test(
        "a client's and a server's messages, with any agreement, in any pieces", arguments: 0..<6)
    func conversation(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let offers = [
            "", "; server_max_window_bits=8", "; client_max_window_bits=9",
            "; server_no_context_takeover",
            "; client_no_context_takeover; client_max_window_bits=8",
        ]
        let deflate =
            seed == 0
            ? nil
            : try Sample.deflate("permessage-deflate\(offers.randomElement(using: &random) ?? "")")
        let configuration = PermessageDeflate.Configuration(
            windowBits: 15, minimumSize: [0, 64].randomElement(using: &random) ?? 0,
            level: Int.random(in: 1...9, using: &random))
        var client = WebSocketSession(.client, deflate: deflate, compression: configuration)
        var server = WebSocketSession(.server, deflate: deflate, compression: configuration)
        var sent: [WebSocketSession.Event] = []
        var (up, down): ([UInt8], [UInt8]) = ([], [])
        for _ in 0..<12 {
            let text = random.text(of: ["Hello", " ", "é", "😀", "\u{0}", "no"], upTo: 40)
            let message: WebSocketMessage =
                Bool.random(using: &random) ? .text(text) : .binary(Array(text.utf8.reversed()))
            sent.append(.message(message))
            up += client.frame(message, key: random.next() as UInt32)
            down += server.frame(message)
            if Bool.random(using: &random) {
                sent.append(.ping([1, 2]))
                up += WebSocketSession.control(.ping, [1, 2], maskKey: random.next())
                down += WebSocketSession.control(.ping, [1, 2], maskKey: nil)
            }
        }
        let wholeUp = TowpathWireTests.heard(up, by: .server, deflate: deflate)
        let wholeDown = TowpathWireTests.heard(down, deflate: deflate)
        #expect(wholeUp.events == sent)
        #expect(wholeDown.events == sent)
        #expect(server.hear(up.split(upTo: 50, &random)).events == sent)
        #expect(client.hear(down.split(upTo: 50, &random)).events == sent)
    }
}

@Suite("RFC 7692 §6: the bit that marks compressed messages")
struct CompressionBitTests {
    @Test(
        "BR-044 RSV1: pongs inside a compressed message are not inflated, and plain messages pass")
    func right() throws {
        let deflate = try Sample.deflate()
        #expect(
            heard(hex("41 03 F2 48 CD 8A 00 80 04 C9 C9 07 00"), deflate: deflate)
                == Heard(.pong([]), .text("Hello")))
        #expect(
            heard(hex("41 03 F2 48 CD 89 02 F2 48 80 04 C9 C9 07 00"), deflate: deflate)
                == Heard(.ping([0xF2, 0x48]), .text("Hello")))
        #expect(heard(hex("81 02 68 69"), deflate: deflate) == Heard(.text("hi")))
        #expect(
            heard(hex("C1 07 \(hello) 81 02 68 69 C1 05 F2 00 11 00 00"), deflate: deflate)
                == Heard(.text("Hello"), .text("hi"), .text("Hello")))
    }

    @Test(
        "BR-044 RSV1: a marked control frame or continuation, and RSV2 and RSV3, fail with 1002",
        arguments: [
            "C9 00", "CA 00", "C8 00", "C8 02 03 E8", "41 03 F2 48 CD C0 04 C9 C9 07 00",
            "01 01 61 C0 01 00", "41 03 F2 48 CD 40 01 C9", "A1 02 68 69", "91 02 68 69", "B1 00",
            "E1 00", "D1 00", "F1 00", "A9 00", "99 00",
        ])
    func wrong(bytes: String) throws {
        let deflate = try Sample.deflate()
        #expect(heard(hex(bytes), deflate: deflate) == Heard(failing: .protocolError))
        #expect(heard(hex(bytes)) == Heard(failing: .protocolError))
    }

    @Test(
        "BR-044 RSV1: without an agreement a marked frame fails with 1002",
        arguments: ["C1 07 \(hello)", "C2 00", "41 00", "C0 00", "C1 01 00", "C9 00"])
    func notAgreed(bytes: String) {
        #expect(heard(hex(bytes)) == Heard(failing: .protocolError))
        #expect(heard(masked(hex(bytes)), by: .server) == Heard(failing: .protocolError))
    }
}
