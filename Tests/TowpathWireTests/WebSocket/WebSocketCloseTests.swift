import Testing
import TowpathWire

private func status(_ code: UInt16, _ reason: String = "") -> WebSocketSession.Event {
    .close(WebSocketCloseStatus(WebSocketCloseCode(rawValue: code), reason))
}

@Suite("RFC 6455 §5.5.1: Close frames")
struct WebSocketCloseTests {
    private static let reason = String(repeating: "r", count: 123)

    @Test(
        "BR-035 close codes: 1000 to 1003, 1007 to 1014, 3000 to 4999, a reason of 123 bytes and none",
        arguments: [
            ("88 00", 1005, ""), ("88 02 03 F4", 1012, ""), ("88 02 0B B8", 3000, ""),
            ("88 02 03 E8", 1000, ""), ("88 02 03 EB", 1003, ""), ("88 02 03 EF", 1007, ""),
            ("88 02 03 F6", 1014, ""), ("88 02 13 87", 4999, ""),
            ("88 05 03 E9 62 79 65", 1001, "bye"),
            (
                "88 7D 03 E8" + String(repeating: " 72", count: 123), 1000,
                String(repeating: "r", count: 123)
            ),
        ] as [(String, UInt16, String)])
    func right(bytes: String, code: UInt16, reason: String) {
        #expect(heard(hex(bytes)) == Heard(status(code, reason)))
        #expect(heard(masked(hex(bytes)), by: .server) == Heard(status(code, reason)))
    }

    @Test(
        "BR-035 close codes: half a code, and those that must not be sent, fail with 1002",
        arguments: [
            "88 01 03", "88 02 03 ED", "88 02 03 EE", "88 02 03 F7", "88 02 00 00", "88 02 03 E7",
            "88 02 13 88", "88 02 03 EC", "88 02 03 F8", "88 02 07 D0", "88 02 0B B7",
            "88 02 FF FF",
            "88 04 03 ED C3 28",
        ])
    func wrong(bytes: String) {
        #expect(heard(hex(bytes)) == Heard(failing: .protocolError))
    }

    @Test("BR-035 close codes: which may be sent")
    func sendable() {
        let codes = (UInt16.min...UInt16.max).filter { WebSocketCloseCode(rawValue: $0).isSendable }
        #expect(codes == Array(1000...1003) + Array(1007...1014) + Array(3000...4999))
    }

    @Test("BR-035 close codes: one that must not be sent is an empty Close frame")
    func payload() {
        func payload(_ code: WebSocketCloseCode, _ reason: String = "") -> [UInt8] {
            WebSocketCloseStatus(code, reason).payload
        }
        #expect(payload(.normalClosure) == [0x03, 0xE8])
        #expect(payload(.goingAway, "bye") == hex("03 E9 62 79 65"))
        #expect(payload(.noStatusReceived, "lost") == [])
        #expect(payload(.abnormalClosure) == [])
        #expect(payload(.tlsHandshake) == [])
        #expect(payload(.normalClosure, Self.reason) == [0x03, 0xE8] + Array(Self.reason.utf8))
    }

    @Test("a reason that is too long ends in front of a character", arguments: 0...4)
    func cut(count: Int) {
        let prefix = String(repeating: "r", count: 123 - count)
        let payload = WebSocketCloseStatus(.normalClosure, prefix + "😀x").payload
        let end = count == 4 ? "😀" : ""
        #expect(Array(payload[2...]) == Array((prefix + end).utf8))
        let frame = WebSocketSession.control(.close, payload, maskKey: nil)
        #expect(heard(frame) == Heard(status(1000, prefix + end)))
    }

    @Test("nothing behind a Close frame is heard, not even in the next piece")
    func behind() {
        var session = WebSocketSession(.client)
        #expect(session.hear(hex("88 00 81 02 68 69 FF FF")) == Heard(status(1005)))
        #expect(session.hear(hex("81 02 68 69")) == Heard())
        #expect(heard(hex("88 02 03 E8 83 00")) == Heard(status(1000)))
    }

    @Test("a Close frame inside a message drops it")
    func inside() {
        #expect(heard(hex("01 01 61 88 00 80 01 62")) == Heard(status(1005)))
    }

    @Test("a code and a status say what they are")
    func words() {
        #expect("\(WebSocketCloseCode.goingAway)" == "1001")
        #expect("\(WebSocketCloseStatus(.goingAway, "bye"))" == "1001, bye")
        #expect("\(WebSocketCloseStatus(.goingAway))" == "1001")
    }
}
