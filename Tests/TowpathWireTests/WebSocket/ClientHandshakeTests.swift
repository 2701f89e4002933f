import Testing
import TowpathWire

@Suite("RFC 6455 §4.1: the client's handshake")
struct ClientHandshakeTests {
    private typealias Offer = WebSocketHandshake.Offer

    private func text(_ offer: Offer) throws -> String {
        String(decoding: try WebSocketHandshake.request(offer), as: UTF8.self)
    }

    @Test("the request, line by line")
    func request() throws {
        let fields: HTTPFields = [HTTPField("Origin", "https://example.com"), HTTPField("X", "")]
        var offer = Sample.offer(
            ["chat", "superchat"], compression: .init(windowBits: 15), fields: fields)
        offer.target = "/chat?room=1&x=%20"
        #expect(
            try text(offer) == """
                GET /chat?room=1&x=%20 HTTP/1.1\r
                Host: server.example.com\r
                Upgrade: websocket\r
                Connection: Upgrade\r
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
                Sec-WebSocket-Version: 13\r
                Sec-WebSocket-Protocol: chat, superchat\r
                Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r
                Origin: https://example.com\r
                X: \r
                \r

                """)
        let bare = try text(Sample.offer())
        #expect(!bare.contains("Protocol") && !bare.contains("Extensions"))
    }

    @Test("a server reads what a client writes")
    func both() throws {
        let offer = Sample.offer(["a", "b"], fields: [HTTPField("Origin", "https://example.com")])
        let request = try WebSocketRequest(
            HTTPRequestHead(parsing: WebSocketHandshake.request(offer)))
        #expect(request.target == "/chat")
        #expect(request.host == "server.example.com")
        #expect(request.origin == "https://example.com")
        #expect(request.subprotocols == ["a", "b"])
        #expect(request.key == Sample.key)
    }

    @Test(
        "a target that is no path is refused",
        arguments: [
            "", "chat", "/a b", "/a#b", "/é", "/a\r\nX: y", "/\u{0}", "http://example.com/",
            "/\u{7F}",
            "*",
        ])
    func target(target: String) {
        var offer = Sample.offer()
        offer.target = target
        #expect(throws: HTTPError.self) { try WebSocketHandshake.request(offer) }
    }

    @Test(
        "a host with a line's end or a blank is refused",
        arguments: ["a\r\nX: y", "a b", "a\n", "\r", "a\u{0}", "a\t"])
    func host(host: String) {
        var offer = Sample.offer()
        offer.host = host
        #expect(throws: HTTPError.self) { try WebSocketHandshake.request(offer) }
    }

    @Test(
        "hosts as they are",
        arguments: ["example.com:8080", "[2001:db8::1]", "192.0.2.1", "münchen.de"])
    func hosts(host: String) throws {
        var offer = Sample.offer()
        offer.host = host
        #expect(try text(offer).contains("\r\nHost: \(host)\r\n"))
    }

    @Test(
        "a subprotocol that is no token, or stands twice, is refused",
        arguments: [[""], ["a b"], ["a,b"], ["a", "a"], ["a\r\nX: y"], ["é"], ["a/b"], ["\"a\""]])
    func subprotocols(subprotocols: [String]) {
        #expect(throws: HTTPError.self) {
            try WebSocketHandshake.request(Sample.offer(subprotocols))
        }
    }

    @Test(
        "a field with a line's end, or with a name that is no token, is refused",
        arguments: [
            HTTPField("X", "a\r\nY: b"), HTTPField("X", "a\n"), HTTPField("X", "\ra"),
            HTTPField("X", "a\u{0}"), HTTPField("X\r\nY", "a"), HTTPField("X:", "a"),
            HTTPField("", "a"), HTTPField("X Y", "a"), HTTPField("é", "a"), HTTPField("X", " a"),
            HTTPField("X", "a\t"), HTTPField("X", "\u{7F}"), HTTPField("X", "a\r\n\r\n"),
        ])
    func fields(field: HTTPField) {
        #expect(throws: HTTPError.self) {
            try WebSocketHandshake.request(Sample.offer(fields: [field]))
        }
    }

    @Test(
        "a field that the handshake writes itself is refused, in upper or lower case",
        arguments: [
            "Host", "host", "Upgrade", "CONNECTION", "Sec-WebSocket-Key", "sec-websocket-version",
            "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions", "Sec-WebSocket-Accept",
            "Content-Length", "Transfer-Encoding",
        ])
    func reserved(name: String) {
        #expect(throws: HTTPError.self) {
            try WebSocketHandshake.request(Sample.offer(fields: [HTTPField(name, "1")]))
        }
        #expect(throws: HTTPError.self) {
            try Sample.acceptance(extensions: nil, fields: [HTTPField(name, "1")])
        }
    }

    // MARK: The answer

    @Test(
        "BR-037 tokens: Connection names Upgrade, whatever else",
        arguments: [
            ["Upgrade"], ["upgrade"], ["keep-alive, Upgrade"], ["Upgrade , keep-alive"],
            ["keep-alive", "Upgrade"], ["UPGRADE"], [",, Upgrade,"], ["keep-alive,\tupgrade"],
        ])
    func connection(values: [String]) throws {
        let lines = values.map { "Connection: \($0)" }
        #expect(try Sample.agreement(without: "Connection", with: lines).subprotocol == nil)
        #expect(try Sample.request(without: "Connection", with: lines).target == "/chat")
    }

    @Test(
        "BR-037 tokens: a Connection that does not name Upgrade fails",
        arguments: [
            ["notupgrade"], ["upgrade-not"], [], [""], ["keep-alive"], ["up grade"],
            ["upgrade;q=1"],
            ["\"upgrade\""],
        ])
    func noConnection(values: [String]) {
        let lines = values.map { "Connection: \($0)" }
        #expect(throws: WebSocketError.self) {
            try Sample.agreement(without: "Connection", with: lines)
        }
        #expect {
            try Sample.request(without: "Connection", with: lines)
        } throws: { ($0 as? WebSocketRefusal)?.status == 400 }
    }

    @Test("BR-037 tokens: Upgrade is websocket in any case", arguments: ["WebSocket", "websocket"])
    func upgrade(value: String) throws {
        let lines = ["Upgrade: \(value)"]
        #expect(try Sample.agreement(without: "Upgrade", with: lines).subprotocol == nil)
        #expect(try Sample.request(without: "Upgrade", with: lines).target == "/chat")
    }

    @Test(
        "BR-037 tokens: an answer upgrades to websocket alone",
        arguments: [["websocket, h2c"], ["h2c"], [], [""], ["websocket", "h2c"], ["web socket"]])
    func wrongUpgrade(values: [String]) {
        #expect(throws: WebSocketError.self) {
            try Sample.agreement(without: "Upgrade", with: values.map { "Upgrade: \($0)" })
        }
    }

    @Test("BR-037 tokens: spaces and tabs around the accept value are none of it")
    func accept() throws {
        let accept = Sample.accept
        for value in [accept, "  \(accept) ", "\t\(accept)\t"] {
            let lines = ["Sec-WebSocket-Accept:\(value)"]
            #expect(
                try Sample.agreement(without: "Sec-WebSocket-Accept", with: lines).subprotocol
                    == nil)
        }
    }

    @Test(
        "BR-037 tokens: any other accept value fails, and so does none",
        arguments: [
            [], [""], ["s3pPLMBiTxaQ9kYGzzhZRbK+xOo"], ["S3pPLMBiTxaQ9kYGzzhZRbK+xOo="],
            ["dGhlIHNhbXBsZSBub25jZQ=="], ["\u{0B}\(Sample.accept)\u{0B}"], ["\(Sample.accept),"],
            [Sample.accept, Sample.accept], ["\"\(Sample.accept)\""],
            ["s3pPLMBiTxaQ9kYGzzhZRb\u{212A}+xOo="],
        ])
    func wrongAccept(values: [String]) {
        let lines = values.map { "Sec-WebSocket-Accept: \($0)" }
        #expect(throws: (any Error).self) {
            try Sample.agreement(without: "Sec-WebSocket-Accept", with: lines)
        }
    }

    @Test("BR-038 subprotocol: none, and one that was offered, are fine")
    func subprotocol() throws {
        let offer = Sample.offer(["chat", "superchat"])
        #expect(try Sample.agreement(offer).subprotocol == nil)
        let chosen = try Sample.agreement(offer, with: ["Sec-WebSocket-Protocol: superchat"])
        #expect(chosen.subprotocol == "superchat")
    }

    @Test(
        "BR-038 subprotocol: any other answer fails",
        arguments: [
            ["foo"], ["chat, superchat"], ["chat", "superchat"], ["chat", "chat"], ["Chat"], [""],
            ["chat,"], ["chat;q=1"],
        ])
    func wrongSubprotocol(values: [String]) {
        let lines = values.map { "Sec-WebSocket-Protocol: \($0)" }
        #expect {
            try Sample.agreement(Sample.offer(["chat", "superchat"]), with: lines)
        } throws: { ($0 as? WebSocketError)?.code == .protocolError }
        #expect(throws: WebSocketError.self) { try Sample.agreement(with: lines) }
    }

    @Test("BR-038 subprotocol: letters that only look like those offered are others")
    func lookalike() {
        #expect(throws: WebSocketError.self) {
            let lines = ["Sec-WebSocket-Protocol: \u{212A}"]
            return try Sample.agreement(Sample.offer(["K"]), with: lines)
        }
    }
}
