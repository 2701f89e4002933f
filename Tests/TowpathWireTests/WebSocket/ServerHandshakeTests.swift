import Testing
import TowpathWire

@Suite("RFC 6455 §4.2: the server's handshake")
struct ServerHandshakeTests {
    private func status(without name: String? = nil, with lines: [String] = []) -> Int? {
        do {
            _ = try Sample.request(without: name, with: lines)
            return nil
        } catch {
            return (error as? WebSocketRefusal)?.status ?? 0
        }
    }

    @Test("the example of §1.3 is read")
    func example() throws {
        let request = try Sample.request(with: [
            "Origin: http://example.com", "Sec-WebSocket-Protocol: chat, superchat",
        ])
        #expect(request.target == "/chat")
        #expect(request.path == "/chat")
        #expect(request.host == "server.example.com")
        #expect(request.origin == "http://example.com")
        #expect(request.subprotocols == ["chat", "superchat"])
        #expect(request.key == Sample.key)
        #expect(request.fields["sec-websocket-version"] == "13")
    }

    @Test("the path is the target without the query")
    func path() throws {
        var lines = Sample.request
        lines[0] = "GET /chat/%3F?room=1?2 HTTP/1.1"
        let request = try WebSocketRequest(HTTPRequestHead(parsing: Sample.head(lines)))
        #expect(request.target == "/chat/%3F?room=1?2")
        #expect(request.path == "/chat/%3F")
    }

    @Test(
        "R-11 a key that is not base64 of 16 bytes is refused with 400",
        arguments: [
            "", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZR==",
            "dGhlIHNhbXBsZSBub25jZQ==dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZWE=",
            "dGhlIHNhbXBsZSBub25jZ===", "dGhlIHNhbXBsZSBub25j-Q==", "dGhlIHNhbXBsZSBub25j_Q==",
            "the sample nonce", "dGhlIHNhbXBsZSBub25 ZQ==", "\"dGhlIHNhbXBsZSBub25jZQ==\"",
            "dGhlIHNhbXBsZSBub25jZQ===", "dGhlIHNhbXBsZSBub25jéQ==",
            "\u{212A}Ghl\u{212A}HNhbXBsZSBub25jZQ==",
        ])
    func wrongKey(key: String) {
        #expect(status(without: "Sec-WebSocket-Key", with: ["Sec-WebSocket-Key: \(key)"]) == 400)
    }

    @Test("R-11 no key, and two of them, are refused with 400")
    func keyCount() {
        #expect(status(without: "Sec-WebSocket-Key") == 400)
        #expect(status(with: ["Sec-WebSocket-Key: \(Sample.key)"]) == 400)
    }

    @Test(
        "any 16 bytes are a key",
        arguments: [
            "AAAAAAAAAAAAAAAAAAAAAA==", "/////////////////////w==", "++++++++++++++++++++0g==",
        ])
    func key(key: String) {
        #expect(status(without: "Sec-WebSocket-Key", with: ["Sec-WebSocket-Key: \(key)"]) == nil)
    }

    @Test(
        "what does not ask for websocket gets 426 and is told what to ask for",
        arguments: [[], ["h2c"], [""], ["websocket-not"], ["web socket"]])
    func upgrade(values: [String]) {
        #expect {
            try Sample.request(without: "Upgrade", with: values.map { "Upgrade: \($0)" })
        } throws: {
            let refusal = $0 as? WebSocketRefusal
            return refusal?.status == 426 && refusal?.fields["Upgrade"] == "websocket"
        }
    }

    @Test(
        "websocket may be one of several protocols", arguments: ["websocket, h2c", "h2c,WebSocket"])
    func severalUpgrades(value: String) {
        #expect(status(without: "Upgrade", with: ["Upgrade: \(value)"]) == nil)
    }

    @Test(
        "another version than 13 gets 426 and is told the version (§4.4)",
        arguments: [[], ["8"], ["14"], ["13, 8"], ["13", "13"], ["013"], [""]])
    func version(values: [String]) {
        #expect {
            try Sample.request(
                without: "Sec-WebSocket-Version",
                with: values.map { "Sec-WebSocket-Version: \($0)" })
        } throws: {
            let refusal = $0 as? WebSocketRefusal
            return refusal?.status == 426 && refusal?.fields["Sec-WebSocket-Version"] == "13"
        }
    }

    @Test(
        "another method, HTTP/1.0 and what is no path are refused with 400",
        arguments: [
            "POST /chat HTTP/1.1", "get /chat HTTP/1.1", "GET /chat HTTP/1.0", "GET * HTTP/1.1",
            "GET ftp://a/chat HTTP/1.1",
        ])
    func method(line: String) {
        var lines = Sample.request
        lines[0] = line
        #expect {
            try WebSocketRequest(HTTPRequestHead(parsing: Sample.head(lines)))
        } throws: { ($0 as? WebSocketRefusal)?.status == 400 }
    }

    @Test(
        "a whole URL is asked for by its path (RFC 9112 §3.2.2)",
        arguments: [
            ("http://a.example/chat?x", "/chat?x"), ("HTTPS://a.example:1/", "/"),
            ("http://a.example", "/"), ("http://a.example?x=/y", "/?x=/y"),
        ])
    func absoluteForm(target: String, path: String) throws {
        var lines = Sample.request
        lines[0] = "GET \(target) HTTP/1.1"
        let request = try WebSocketRequest(HTTPRequestHead(parsing: Sample.head(lines)))
        #expect(request.target == path)
    }

    @Test("a request with a body is refused with 400: it would be read as frames")
    func body() {
        #expect(status(with: ["Content-Length: 5"]) == 400)
        #expect(status(with: ["Transfer-Encoding: chunked"]) == 400)
        #expect(status(with: ["Content-Length: 0"]) == nil)
    }

    @Test("no host, and two of them, are refused with 400")
    func host() {
        #expect(status(without: "Host") == 400)
        #expect(status(with: ["Host: b"]) == 400)
        #expect(status(without: "Host", with: ["Host:"]) == nil)
    }

    @Test(
        "subprotocols that are no list of different tokens are refused with 400",
        arguments: [
            ["a b"], ["a", "a"], ["a, a"], ["a;q=1"], ["\"a\""], ["é"], ["a/b"], ["a,, b="],
        ])
    func wrongSubprotocols(values: [String]) {
        #expect(status(with: values.map { "Sec-WebSocket-Protocol: \($0)" }) == 400)
    }

    @Test("subprotocols of several fields are one list")
    func subprotocols() throws {
        let request = try Sample.request(with: [
            "Sec-WebSocket-Protocol: a,b ,", "X: y", "sec-websocket-protocol: ,,c",
        ])
        #expect(request.subprotocols == ["a", "b", "c"])
    }

    @Test(
        "extensions that are no list are refused with 400",
        arguments: [
            "a b", "a;", "a;=1", "a;b=", "=", "a;b=\"", "a;b=\"c\"d", "a;b=\"\\", "\"a\"",
            "a;b=\"\"",
            "a;b=\"c d\"", "a/b",
        ])
    func wrongExtensions(value: String) {
        #expect(status(with: ["Sec-WebSocket-Extensions: \(value)"]) == 400)
    }

    @Test("extensions that nobody knows are passed over")
    func unknownExtensions() throws {
        let (agreement, head) = try Sample.acceptance(extensions: "foo; a=\"b\", bar")
        #expect(agreement.deflate == nil && agreement.subprotocol == nil)
        #expect(head.fields["Sec-WebSocket-Extensions"] == nil)
    }

    // MARK: The answer

    @Test("the answer, line by line")
    func acceptance() throws {
        let request = try Sample.request(with: [
            "Sec-WebSocket-Protocol: chat, superchat",
            "Sec-WebSocket-Extensions: permessage-deflate",
        ])
        let (agreement, answer) = try WebSocketHandshake.acceptance(
            of: request, accept: Sample.accept, subprotocol: "superchat",
            fields: [HTTPField("Set-Cookie", "a=b"), HTTPField("Set-Cookie", "c=d")],
            compression: .init(windowBits: 15))
        #expect(agreement.subprotocol == "superchat")
        #expect(agreement.deflate != nil)
        #expect(
            String(decoding: answer, as: UTF8.self) == """
                HTTP/1.1 101 Switching Protocols\r
                Upgrade: websocket\r
                Connection: Upgrade\r
                Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r
                Sec-WebSocket-Protocol: superchat\r
                Sec-WebSocket-Extensions: permessage-deflate\r
                Set-Cookie: a=b\r
                Set-Cookie: c=d\r
                \r

                """)
    }

    @Test("BR-038 subprotocol: a server that shares none answers 101 without the field")
    func noSubprotocol() throws {
        let request = try Sample.request(with: ["Sec-WebSocket-Protocol: chat"])
        let (agreement, answer) = try WebSocketHandshake.acceptance(
            of: request, accept: Sample.accept, subprotocol: nil, fields: [], compression: nil)
        let head = try HTTPResponseHead(parsing: answer)
        #expect(head.status == 101)
        #expect(head.fields["Sec-WebSocket-Protocol"] == nil)
        #expect(agreement.subprotocol == nil)
    }

    @Test(
        "BR-038 subprotocol: a server cannot choose what was not offered",
        arguments: ["mqtt", "", "Chat"])
    func notOffered(subprotocol: String) throws {
        let request = try Sample.request(with: ["Sec-WebSocket-Protocol: chat"])
        #expect(throws: HTTPError.self) {
            try WebSocketHandshake.acceptance(
                of: request, accept: Sample.accept, subprotocol: subprotocol, fields: [],
                compression: nil
            ).1
        }
    }

    @Test("fields with line ends are refused in answers")
    func injection() {
        for field in [HTTPField("X", "a\r\nY: b"), HTTPField("X\n", "a")] {
            #expect(throws: HTTPError.self) {
                try Sample.acceptance(extensions: nil, fields: [field]).head
            }
            #expect(throws: HTTPError.self) {
                try WebSocketHandshake.refusal(status: 400, fields: [field], body: "")
            }
        }
    }

    // MARK: Refusals

    private func refusal(
        _ status: Int, _ fields: HTTPFields = [], _ body: String = ""
    ) throws -> String {
        let bytes = try WebSocketHandshake.refusal(status: status, fields: fields, body: body)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("a refusal says its status, closes, and has a body of a known length")
    func refusal() throws {
        #expect(
            try refusal(403)
                == "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        let text = try refusal(404, [HTTPField("X", "y")], "né")
        #expect(text.hasPrefix("HTTP/1.1 404 Not Found\r\nX: y\r\n"))
        #expect(text.contains("\r\nContent-Length: 3\r\n"))
        #expect(text.contains("\r\nContent-Type: text/plain; charset=utf-8\r\n"))
        #expect(text.hasSuffix("\r\n\r\nné"))
        for status in [300, 400, 401, 403, 404, 418, 426, 429, 431, 500, 503, 599] {
            let head = try HTTPResponseHead(parsing: Array(refusal(status).utf8))
            #expect(head.status == status)
        }
    }

    @Test("a refusal that tells what to upgrade to says that in Connection too (RFC 9110 §7.8)")
    func upgradeRequired() throws {
        let refusal = #expect(throws: WebSocketRefusal.self) {
            try Sample.request(without: "Sec-WebSocket-Version")
        }
        let text = try self.refusal(426, try #require(refusal).fields)
        let head = try HTTPResponseHead(parsing: Array(text.utf8))
        #expect(head.reason == "Upgrade Required")
        #expect(head.fields.values(of: "Connection") == ["Upgrade, close"])
        #expect(head.fields.values(of: "Upgrade") == ["websocket"])
        #expect(head.fields.values(of: "Sec-WebSocket-Version") == ["13"])
    }

    @Test(
        "a refusal has a status of a redirection or an error",
        arguments: [0, 101, 200, 299, 600, -1])
    func refusalStatus(status: Int) {
        #expect(throws: HTTPError.self) { try refusal(status) }
    }

    @Test(
        "no field of a refusal has a line's end, whatever its name",
        arguments: ["Upgrade", "Connection", "Sec-WebSocket-Version", "X"])
    func refusalInjection(name: String) {
        #expect(throws: HTTPError.self) { try refusal(400, [HTTPField(name, "a\r\nX: b")]) }
    }

    @Test(
        "a refusal's own fields cannot be set", arguments: ["Content-Length", "Transfer-Encoding"])
    func refusalFields(name: String) {
        #expect(throws: HTTPError.self) { try refusal(400, [HTTPField(name, "1")]) }
    }

    @Test("a body has the type that is given")
    func bodyType() throws {
        let fields: HTTPFields = [HTTPField("content-type", "application/json")]
        let head = try refusal(400, fields, "{}").split(separator: "\r\n\r\n")[0]
        let parsed = try HTTPResponseHead(parsing: Array("\(head)\r\n\r\n".utf8))
        #expect(parsed.fields.values(of: "Content-Type") == ["application/json"])
    }

    @Test("what an application answers")
    func responses() {
        let accepted = WebSocketResponse.accept(subprotocol: "a", fields: [HTTPField("X", "y")])
        #expect(accepted.kind == .accepted(subprotocol: "a"))
        #expect(accepted.fields == [HTTPField("X", "y")])
        #expect(WebSocketResponse.accept() == .accept(subprotocol: nil, fields: []))
        let refused = WebSocketResponse.refuse(status: 404, body: "none")
        #expect(refused.kind == .refused(status: 404, body: "none"))
        #expect(refused.fields.isEmpty)
    }
}
