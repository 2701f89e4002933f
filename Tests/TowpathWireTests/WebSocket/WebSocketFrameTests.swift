import Testing
import TowpathWire

private func written(_ header: WebSocketFrameHeader) -> [UInt8] {
    var bytes = [UInt8](repeating: 0xEE, count: WebSocketFrameHeader.maximumCount)
    bytes.withUnsafeMutableBytes { header.write(to: $0) }
    #expect(bytes[header.count...].allSatisfy { $0 == 0xEE })
    return Array(bytes[..<header.count])
}

private func read(_ bytes: [UInt8]) throws -> WebSocketFrameHeader {
    try bytes.withUnsafeBytes { bytes throws(WebSocketError) in
        try WebSocketFrameHeader(reading: bytes)
    }
}

@Suite("RFC 6455 §5.2: frames")
struct WebSocketFrameTests {
    @Test(
        "the head of a payload has the shortest length that there is",
        arguments: [
            (0, "00"), (1, "01"), (125, "7D"), (126, "7E 00 7E"), (127, "7E 00 7F"),
            (65_535, "7E FF FF"), (65_536, "7F 00 00 00 00 00 01 00 00"),
            (Int.max, "7F 7F FF FF FF FF FF FF FF"),
        ])
    func lengths(count: Int, length: String) throws {
        let plain = WebSocketFrameHeader(.binary, payloadCount: count)
        #expect(written(plain) == [0x82] + hex(length))
        #expect(try read(written(plain)) == plain)
        var masked = plain
        masked.maskKey = UInt32(bigEndian: 0x0102_0304)
        var expected = [0x82] + hex(length) + [1, 2, 3, 4]
        expected[1] |= 0x80
        #expect(written(masked) == expected)
        #expect(try read(expected) == masked)
    }

    @Test(
        "the first byte has the opcode, the end and the mark of compression",
        arguments: [
            (WebSocketFrameHeader(.continuation, isFinal: false, payloadCount: 0), 0x00),
            (
                WebSocketFrameHeader(.text, isFinal: false, isCompressed: true, payloadCount: 0),
                0x41
            ),
            (WebSocketFrameHeader(.text, payloadCount: 0), 0x81),
            (WebSocketFrameHeader(.binary, isCompressed: true, payloadCount: 0), 0xC2),
            (WebSocketFrameHeader(.close, payloadCount: 0), 0x88),
            (WebSocketFrameHeader(.ping, payloadCount: 0), 0x89),
            (WebSocketFrameHeader(.pong, payloadCount: 0), 0x8A),
        ] as [(WebSocketFrameHeader, UInt8)])
    func first(header: WebSocketFrameHeader, byte: UInt8) throws {
        #expect(written(header) == [byte, 0])
        #expect(try read([byte, 0]) == header)
    }

    @Test("two bytes tell how long a head is")
    func count() {
        func count(_ text: String) -> Int? {
            hex(text).withUnsafeBytes(WebSocketFrameHeader.count(of:))
        }
        #expect(count("") == nil)
        #expect(count("81") == nil)
        #expect(count("81 7D") == 2)
        #expect(count("81 FD") == 6)
        #expect(count("81 7E") == 4)
        #expect(count("81 FE 00") == 8)
        #expect(count("81 7F") == 10)
        #expect(count("81 FF") == 14)
    }

    @Test("a head is read from where it lies, aligned or not", arguments: 0..<8)
    func unaligned(offset: Int) throws {
        let bytes = hex("82 FF 00 00 00 00 00 01 00 00 01 02 03 04")
        let padded = [UInt8](repeating: 0, count: offset) + bytes
        let header = try padded.withUnsafeBytes { padded throws(WebSocketError) in
            try WebSocketFrameHeader(reading: UnsafeRawBufferPointer(rebasing: padded[offset...]))
        }
        #expect(header == (try read(bytes)))
    }

    @Test(
        "opcodes that are not defined fail",
        arguments: [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] as [UInt8])
    func opcode(_ opcode: UInt8) {
        #expect(heard(frame(0x80 | opcode)) == Heard(failing: .protocolError))
        #expect(throws: WebSocketError.self) { try read([0x80 | opcode, 0]) }
    }

    @Test("a control frame is whole and has at most 125 bytes", arguments: [8, 9, 10] as [UInt8])
    func control(opcode: UInt8) {
        #expect(heard([opcode, 0]) == Heard(failing: .protocolError))
        let long = frame(0x80 | opcode, [UInt8](repeating: 0x20, count: 126))
        #expect(heard(long) == Heard(failing: .protocolError))
        #expect(heard([0x80 | opcode, 0x7E]) == Heard(failing: .protocolError))
        #expect(heard([0x80 | opcode, 0x7F]) == Heard(failing: .protocolError))
    }

    @Test("pings and pongs carry up to 125 bytes", arguments: [0, 1, 124, 125])
    func ping(count: Int) {
        let payload = (0..<count).map { UInt8($0) }
        let both = frame(0x89, payload) + frame(0x8A, payload)
        #expect(heard(both) == Heard(.ping(payload), .pong(payload)))
        #expect(WebSocketSession.control(.ping, payload, maskKey: nil) == frame(0x89, payload))
        let key = UInt32(bigEndian: 0x0102_0304)
        let masked = WebSocketSession.control(.pong, payload, maskKey: key)
        #expect(masked == frame(0x8A, payload, key: 0x0102_0304))
        #expect(heard(masked, by: .server) == Heard(.pong(payload)))
    }

    @Test("a wrong first byte fails before a length or payload comes")
    func early() {
        #expect(heard(hex("83 7F")) == Heard(failing: .protocolError))
        #expect(heard(hex("A1 7E")) == Heard(failing: .protocolError))
        #expect(heard(hex("81 FE")) == Heard(failing: .protocolError))
    }

    @Test("after a failure nothing more is heard")
    func failed() {
        var session = WebSocketSession(.client)
        #expect(session.hear(frame(0x83)) == Heard(failing: .protocolError))
        #expect(session.hear(frame(0x81, [0x61])) == Heard())
    }
}

@Suite("RFC 6455 §5.2: lengths from outside")
struct WebSocketLengthTests {
    @Test(
        "BR-032 lengths: the highest bit and long forms fail with 1002, too much with 1009, none traps",
        arguments: [
            ("82 7F FF FF FF FF FF FF FF FF", 0, 1002), ("82 7F 80 00 00 00 00 00 00 00", 0, 1002),
            ("82 7F 7F FF FF FF FF FF FF FF", 0, 1009), ("82 7E 00 7D", 125, 1002),
            ("82 7F 00 00 00 00 00 00 FF FF", 65_535, 1002), ("82 7E 00 00", 0, 1002),
            ("82 7F 00 00 00 00 00 00 00 00", 0, 1002),
            ("82 7F FF FF FF FF FF FF FF FC", 0, 1002), ("02 7F 7F FF FF FF FF FF FF FF", 0, 1009),
        ] as [(String, Int, UInt16)])
    func wrong(head: String, count: Int, code: UInt16) {
        let bytes = hex(head) + [UInt8](repeating: 7, count: count)
        let expected = Heard(failing: WebSocketCloseCode(rawValue: code))
        #expect(heard(bytes) == expected)
        #expect(heard(masked(bytes), by: .server) == expected)
    }

    @Test(
        "BR-032 lengths: 32,768 bytes and every boundary are accepted",
        arguments: [0, 125, 126, 127, 32_767, 32_768, 65_535, 65_536])
    func right(count: Int) {
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        #expect(heard(frame(0x82, payload)) == Heard(.binary(payload)))
        #expect(heard(masked(frame(0x82, payload)), by: .server) == Heard(.binary(payload)))
    }

    @Test(
        "BR-032 lengths: what is sent has the shortest form",
        arguments: [
            (125, "82 7D"), (126, "82 7E 00 7E"), (65_535, "82 7E FF FF"),
            (65_536, "82 7F 00 00 00 00 00 01 00 00"),
        ])
    func sent(count: Int, head: String) {
        let payload = [UInt8](repeating: 7, count: count)
        var server = WebSocketSession(.server)
        #expect(server.frame(.binary(payload)) == hex(head) + payload)
        var client = WebSocketSession(.client)
        let sent = client.frame(.binary(payload), key: UInt32(bigEndian: 0x37FA_213D))
        #expect(sent == masked(hex(head) + payload))
    }

    @Test(
        "BR-032 lengths: a huge length without a bound on messages takes no memory, and is no trap")
    func unbounded() {
        var session = WebSocketSession(.client, limits: .init(message: .max))
        #expect(session.hear(hex("82 7F 7F FF FF FF FF FF FF FF 01 02 03")) == Heard())
        #expect(session.hear(hex("04")) == Heard())
        var fragments = WebSocketSession(.client, limits: .init(message: .max))
        #expect(
            fragments.hear(hex("02 01 01 80 7F 7F FF FF FF FF FF FF FF"))
                == Heard(failing: .messageTooBig))
    }
}
