import Testing
import TowpathWire

private func request(_ text: String) throws -> HTTPRequestHead {
    try HTTPRequestHead(parsing: Array(text.utf8))
}

private func response(_ text: String) throws -> HTTPResponseHead {
    try HTTPResponseHead(parsing: Array(text.utf8))
}

@Suite("RFC 9112 §3: request lines")
struct HTTPRequestHeadTests {
    @Test("method, target, version and fields are read")
    func good() throws {
        let head = try request("GET /chat?a=b HTTP/1.1\r\nHost: a\r\nX-Y:z\r\n\r\n")
        #expect(head.method == "GET")
        #expect(head.target == "/chat?a=b")
        #expect(head.minorVersion == 1)
        #expect(Array(head.fields) == [HTTPField("Host", "a"), HTTPField("X-Y", "z")])
        #expect(try request("M-SEARCH * HTTP/1.0\r\n\r\n").minorVersion == 0)
    }

    @Test(
        "any other first line is refused",
        arguments: [
            "GET /", "GET", "", "GET / HTTP/1.1 ", " GET / HTTP/1.1", "GET  / HTTP/1.1",
            "GET /  HTTP/1.1", "GET /a b HTTP/1.1", "GET\t/ HTTP/1.1", "G(T / HTTP/1.1",
            " / HTTP/1.1", "GET  HTTP/1.1", "GET /\u{0} HTTP/1.1", "GET /\u{7F} HTTP/1.1",
            "GET /é HTTP/1.1", "GET /\t HTTP/1.1", "G\u{0}T / HTTP/1.1",
        ])
    func bad(line: String) {
        #expect(throws: HTTPError.self) { try request("\(line)\r\nHost: a\r\n\r\n") }
    }

    @Test(
        "versions but 1.0 and 1.1 are refused",
        arguments: [
            "HTTP/2.0", "HTTP/0.9", "HTTP/1", "HTTP/1.", "HTTP/1.11", "http/1.1", "HTTP/01.1",
            "HTTP/1.x",
            "HTTPS/1.1", "HTTP/1.1\u{0}", "", "HTTP 1.1",
        ])
    func version(version: String) {
        #expect(throws: HTTPError.self) { try request("GET / \(version)\r\n\r\n") }
        #expect(throws: HTTPError.self) { try response("\(version) 200 OK\r\n\r\n") }
    }

    @Test("a long head is read")
    func long() throws {
        let target = "/" + String(repeating: "a", count: 100_000)
        let fields = (0..<1_000).map { "X-\($0): \(String(repeating: "v", count: 60))\r\n" }
        let head = try request("GET \(target) HTTP/1.1\r\n\(fields.joined())\r\n")
        #expect(head.target == target)
        #expect(head.fields.count == 1_000)
        #expect(head.fields["x-999"]?.utf8.count == 60)
    }

    @Test("an error of a long line says only its beginning, and nothing that a terminal obeys")
    func error() {
        let line = "GET \u{1B}[2J" + String(repeating: "a", count: 1_000)
        #expect {
            try request("\(line)\r\n\r\n")
        } throws: {
            let message = ($0 as? HTTPError)?.message ?? ""
            return !message.isEmpty && message.utf8.count < 200 && !message.contains("\u{1B}")
        }
        #expect {
            try request("GET / HTTP/1.1\r\n\(String(repeating: "b", count: 1_000))\r\n\r\n")
        } throws: { (1..<200).contains(($0 as? HTTPError)?.message.utf8.count ?? 0) }
    }
}

@Suite("RFC 9112 §4: status lines")
struct HTTPResponseHeadTests {
    @Test("version, status, reason and fields are read")
    func good() throws {
        let head = try response("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")
        #expect(head.minorVersion == 1)
        #expect(head.status == 101)
        #expect(head.reason == "Switching Protocols")
        #expect(Array(head.fields) == [HTTPField("Upgrade", "websocket")])
        #expect(try response("HTTP/1.0 404 \r\n\r\n").reason == "")
        #expect(try response("HTTP/1.0 404\r\n\r\n").status == 404)
        #expect(try response("HTTP/1.1 999 é \t\r\n\r\n").reason == "é \t")
    }

    @Test(
        "any other first line is refused",
        arguments: [
            "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 099 OK",
            "HTTP/1.1 +20 OK", "HTTP/1.1 2x0 OK", "HTTP/1.1  200 OK", " HTTP/1.1 200 OK",
            "HTTP/1.1\t200 OK", "200 OK", "", "HTTP/1.1 ٢٠٠ OK", "HTTP/1.1 200 O\u{0}K",
            "HTTP/1.1 200 O\u{7F}K", "HTTP/1.1 -10 OK",
        ])
    func bad(line: String) {
        #expect(throws: HTTPError.self) { try response("\(line)\r\nA: b\r\n\r\n") }
    }
}

@Suite("RFC 9112 §2.2 and §5: lines and fields")
struct HTTPFieldLineTests {
    /// The same lines in a request and in a response.
    private func fields(_ lines: String) throws -> HTTPFields {
        let ours = try request("GET / HTTP/1.1\r\n\(lines)")
        #expect(try response("HTTP/1.1 200 OK\r\n\(lines)").fields == ours.fields)
        return ours.fields
    }

    @Test(
        "spaces and tabs around a value are none of it",
        arguments: [
            ("A:b", "b"), ("A: b", "b"), ("A:\t b \t", "b"), ("A:", ""), ("A: \t", ""),
            ("A: b c", "b c"), ("A: b\tc", "b\tc"), ("A: b:c", "b:c"), ("A: é", "é"),
            ("!#$%&'*+-.^_`|~09azAZ: b", "b"),
        ])
    func values(line: String, value: String) throws {
        #expect(try fields("\(line)\r\n\r\n").map(\.value) == [value])
    }

    @Test(
        "a line that is no field is refused",
        arguments: [
            "A", "A b", ":b", " A: b", "\tA: b", "A : b", "A\t: b", "A B: c", "A\u{0}: b", "é: b",
            "A(: b", "A: b\r\n c", "A: b\r\n\tc", "A: b\r\n : c", "A\u{0B}: b", "\"A\": b",
        ])
    func noField(line: String) {
        #expect(throws: HTTPError.self) { try fields("\(line)\r\n\r\n") }
    }

    @Test(
        "a control character in a value is refused",
        arguments: ["\u{0}", "\u{1}", "\u{8}", "\u{B}", "\u{C}", "\u{1B}", "\u{1F}", "\u{7F}"])
    func control(character: String) {
        for value in [character, "a\(character)", "\(character)a", "a\(character)b"] {
            #expect(throws: HTTPError.self) { try fields("A: \(value)\r\n\r\n") }
        }
    }

    @Test(
        "lines end with CR LF and nothing else",
        arguments: [
            "A: b\n\n", "A: b\r\r", "A: b\r\n\n", "A: b\n\r\n", "A: b\rC: d\r\n\r\n",
            "A: b\nC: d\r\n\r\n", "A: b\r\r\n\r\n", "\n", "\r", "A: b\r\n\r", "A: b\n\r\n\r\n",
        ])
    func lineEnds(lines: String) {
        #expect(throws: HTTPError.self) { try fields(lines) }
    }

    @Test("a head ends with its empty line, and nothing is behind it")
    func end() throws {
        let whole = "GET / HTTP/1.1\r\nHost: a\r\nB: c\r\n\r\n"
        #expect(try request(whole).fields.count == 2)
        for count in 0..<whole.utf8.count {
            #expect(throws: HTTPError.self) {
                try HTTPRequestHead(parsing: Array(whole.utf8.prefix(count)))
            }
        }
        #expect(throws: HTTPError.self) { try request(whole + "x") }
        #expect(throws: HTTPError.self) { try request(whole + "\r\n") }
    }

    @Test("bytes beyond ASCII that are no UTF-8 are no failure")
    func opaque() throws {
        let bytes = Array("GET / HTTP/1.1\r\nA: ".utf8) + [0xFF, 0xC3] + Array("\r\n\r\n".utf8)
        #expect(try HTTPRequestHead(parsing: bytes).fields["A"]?.isEmpty == false)
    }
}

@Suite("RFC 9110 §5: fields")
struct HTTPFieldTests {
    private let fields: HTTPFields = [
        HTTPField("Accept", "a"), HTTPField("X", "1"), HTTPField("accept", "b, c"),
    ]

    @Test("names are the same in upper and lower case, and several values are a list")
    func names() {
        #expect(fields["ACCEPT"] == "a, b, c")
        #expect(fields.values(of: "Accept") == ["a", "b, c"])
        #expect(fields["Accep"] == nil)
        #expect(fields.values(of: "Acceptt").isEmpty)
        #expect("sec-websocket-Key".isSame(as: "Sec-WebSocket-KEY"))
        #expect(!"[".isSame(as: "{"))
        #expect(!"K".isSame(as: "\u{212A}"))
    }

    @Test("fields keep their order and number")
    func order() {
        var fields = fields
        fields.append(HTTPField("X", "2"))
        #expect(fields.map(\.description) == ["Accept: a", "X: 1", "accept: b, c", "X: 2"])
        #expect(fields[fields.startIndex] == HTTPField("Accept", "a"))
        #expect(fields.endIndex == 4)
        #expect(HTTPFields().isEmpty)
    }

    @Test("a field is valid if its name is a token and its value text")
    func valid() {
        for (name, value) in [("A", ""), ("A-b", "c d\te"), ("A", "é"), ("~", "a:b")] {
            #expect(HTTPField(name, value).isValid)
        }
        for (name, value) in [
            ("", ""), ("A ", "b"), ("A:", "b"), ("A", " b"), ("A", "b "), ("A", "\tb"),
            ("A", "b\n"),
            ("A", "b\rc"), ("A", "\u{0}"), ("A", "\u{7F}"), ("é", "b"), ("A", "b\r\n c"),
        ] {
            #expect(!HTTPField(name, value).isValid)
        }
    }
}
