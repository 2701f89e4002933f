import Testing
import TowpathWire

@Suite("RFC 7692 §7.1: what is agreed on compression")
struct PermessageDeflateTests {
    private typealias Configuration = PermessageDeflate.Configuration

    /// The answer to an offer; nil if there is none.
    private func answer(
        to offer: String, _ configuration: Configuration? = .init(windowBits: 12)
    ) throws -> String? {
        let (agreement, head) = try Sample.acceptance(extensions: offer, configuration)
        let answer = head.fields["Sec-WebSocket-Extensions"]
        #expect((agreement.deflate == nil) == (answer == nil))
        return answer
    }

    /// What a client says of an answer: what it agreed to, or nothing.
    private func agreement(
        on answer: String, _ configuration: Configuration? = .init(windowBits: 15)
    ) throws -> PermessageDeflate? {
        try Sample.agreement(
            Sample.offer(compression: configuration),
            with: ["Sec-WebSocket-Extensions: \(answer)"]
        ).deflate
    }

    // MARK: A client

    @Test("a client offers what it is ready for")
    func offers() throws {
        func offer(_ configuration: Configuration) throws -> String? {
            let bytes = try WebSocketHandshake.request(Sample.offer(compression: configuration))
            return try HTTPRequestHead(parsing: bytes).fields["Sec-WebSocket-Extensions"]
        }
        #expect(
            try offer(.init(windowBits: 15)) == "permessage-deflate; client_max_window_bits")
        #expect(
            try offer(.init(windowBits: 10))
                == "permessage-deflate; server_max_window_bits=10; client_max_window_bits=10")
        let forgetful = "client_no_context_takeover; server_no_context_takeover"
        #expect(
            try offer(.init(windowBits: 15, keepsContext: false))
                == "permessage-deflate; \(forgetful); client_max_window_bits")
    }

    @Test("no extension in the answer is no compression", arguments: [nil, ""] as [String?])
    func none(value: String?) throws {
        let added = value.map { ["Sec-WebSocket-Extensions: \($0)"] } ?? []
        let offer = Sample.offer(compression: .init(windowBits: 15))
        #expect(try Sample.agreement(offer, with: added).deflate == nil)
    }

    @Test(
        "BR-041 window bits: a client accepts 8 to 15, and a value in quotes",
        arguments: [
            "", "; server_max_window_bits=8", "; client_max_window_bits=8",
            "; client_max_window_bits=15", "; server_max_window_bits=15",
            "; client_max_window_bits=\"10\"", "; server_max_window_bits=\"10\"",
            "; server_max_window_bits = 9 ;client_max_window_bits=9",
            "; server_no_context_takeover; client_no_context_takeover",
        ])
    func accepted(parameters: String) throws {
        #expect(try agreement(on: "permessage-deflate\(parameters)") != nil)
    }

    @Test("BR-041 window bits: a quoted 10 is 10")
    func quoted() throws {
        #expect(
            try agreement(on: "permessage-deflate; client_max_window_bits=\"10\"")
                == agreement(on: "permessage-deflate; client_max_window_bits=10"))
        #expect(
            try answer(to: "permessage-deflate; server_max_window_bits=\"1\\0\"")
                == "permessage-deflate; server_max_window_bits=10")
    }

    @Test(
        "BR-041 window bits: a client fails over any other answer",
        arguments: [
            "client_max_window_bits=7", "client_max_window_bits=16", "client_max_window_bits=08",
            "client_max_window_bits='8'", "client_max_window_bits", "client_max_window_bits=",
            "client_max_window_bits=\"\"", "client_max_window_bits=010",
            "client_max_window_bits=10; client_max_window_bits=10", "client_max_window_bits=0",
            "client_max_window_bits=-8", "client_max_window_bits=99999999999999999999",
            "client_max_window_bits=10x", "client_max_window_bits=\" 10\"",
            "server_max_window_bits=7", "server_max_window_bits=16", "server_max_window_bits=08",
            "server_max_window_bits='8'", "server_max_window_bits",
            "server_max_window_bits=\"010\"",
            "server_max_window_bits=10; server_max_window_bits=11",
            "server_no_context_takeover=1", "client_no_context_takeover=\"\"",
            "server_no_context_takeover; server_no_context_takeover", "unknown", "unknown=1",
        ])
    func refused(parameter: String) {
        #expect {
            try agreement(on: "permessage-deflate; \(parameter)")
        } throws: { ($0 as? WebSocketError)?.code == .protocolError }
    }

    @Test(
        "an extension that was not offered, a second one, and what is no list fail",
        arguments: [
            "foo", "permessage-deflate, foo", "permessage-deflate, permessage-deflate",
            "permessage-deflate;", "permessage-deflate; a b", "x-webkit-deflate-frame", "=",
        ])
    func wrongExtension(value: String) {
        #expect(throws: WebSocketError.self) { try agreement(on: value) }
        #expect(throws: WebSocketError.self) { try agreement(on: value, nil) }
    }

    @Test("compression that was not offered fails")
    func notOffered() {
        #expect(throws: WebSocketError.self) { try agreement(on: "permessage-deflate", nil) }
    }

    @Test("a client that asked for a small window or no context gets it, or fails")
    func ignored() throws {
        #expect(throws: WebSocketError.self) {
            try agreement(on: "permessage-deflate", .init(windowBits: 10))
        }
        #expect(throws: WebSocketError.self) {
            let answer = "permessage-deflate; server_max_window_bits=11"
            return try agreement(on: answer, .init(windowBits: 10))
        }
        let smaller = "permessage-deflate; server_max_window_bits=9"
        #expect(try agreement(on: smaller, .init(windowBits: 10)) != nil)
        let forgetful = Configuration(windowBits: 15, keepsContext: false)
        #expect(throws: WebSocketError.self) {
            try agreement(on: "permessage-deflate; client_no_context_takeover", forgetful)
        }
        #expect(
            try agreement(on: "permessage-deflate; server_no_context_takeover", forgetful) != nil)
    }

    // MARK: A server

    @Test(
        "a server answers with what it agrees to",
        arguments: [
            ("permessage-deflate", "; server_max_window_bits=12"),
            (
                "permessage-deflate; client_max_window_bits",
                "; server_max_window_bits=12; client_max_window_bits=12"
            ),
            (
                "permessage-deflate; client_max_window_bits=10",
                "; server_max_window_bits=12; client_max_window_bits=10"
            ),
            ("permessage-deflate; server_max_window_bits=9", "; server_max_window_bits=9"),
            ("permessage-deflate; server_max_window_bits=15", "; server_max_window_bits=12"),
            (
                "permessage-deflate; server_no_context_takeover",
                "; server_no_context_takeover; server_max_window_bits=12"
            ),
            (
                "permessage-deflate; client_no_context_takeover",
                "; client_no_context_takeover; server_max_window_bits=12"
            ),
        ])
    func answers(offer: String, parameters: String) throws {
        #expect(try answer(to: offer) == "permessage-deflate\(parameters)")
    }

    @Test("a server that keeps no context says so, one with all of the window need not")
    func answersOfOthers() throws {
        #expect(try answer(to: "permessage-deflate", .init(windowBits: 15)) == "permessage-deflate")
        #expect(
            try answer(to: "permessage-deflate", .init(windowBits: 15, keepsContext: false))
                == "permessage-deflate; server_no_context_takeover; client_no_context_takeover")
        #expect(try answer(to: "permessage-deflate", nil) == nil)
    }

    @Test(
        "BR-041 window bits: a server answers to 8 and to 15",
        arguments: [
            ("server_max_window_bits=8", "server_max_window_bits=8"),
            ("client_max_window_bits=8", "server_max_window_bits=12; client_max_window_bits=8"),
            ("client_max_window_bits=15", "server_max_window_bits=12; client_max_window_bits=12"),
            ("server_max_window_bits=\"10\"", "server_max_window_bits=10"),
        ])
    func eight(offer: String, parameters: String) throws {
        #expect(
            try answer(to: "permessage-deflate; \(offer)") == "permessage-deflate; \(parameters)")
    }

    @Test(
        "BR-041 window bits: a server refuses the extension with any other value",
        arguments: [
            "client_max_window_bits=7", "client_max_window_bits=16", "client_max_window_bits=08",
            "client_max_window_bits='8'", "client_max_window_bits; client_max_window_bits=10",
            "server_max_window_bits=7",
            "server_max_window_bits=16", "server_max_window_bits=08", "server_max_window_bits='8'",
            "server_max_window_bits", "server_max_window_bits=9; server_max_window_bits=9",
            "server_no_context_takeover=1", "unknown",
        ])
    func declined(parameter: String) throws {
        #expect(try answer(to: "permessage-deflate; \(parameter)") == nil)
    }

    @Test("the first offer that can be accepted is, in one field or several")
    func severalOffers() throws {
        let offers = "foo; x=\"ab\", permessage-deflate; client_max_window_bits=7, ,"
        #expect(
            try answer(
                to: offers + "permessage-deflate; server_max_window_bits=10, permessage-deflate")
                == "permessage-deflate; server_max_window_bits=10")
        let request = try Sample.request(with: [
            "Sec-WebSocket-Extensions: foo", "Sec-WebSocket-Extensions: permessage-deflate",
        ])
        let agreement = try WebSocketHandshake.acceptance(
            of: request, accept: Sample.accept, subprotocol: nil, fields: [],
            compression: .init(windowBits: 15)
        ).0
        #expect(agreement.deflate != nil)
    }

    @Test("both sides agree on the same", arguments: [9, 10, 12, 15], [9, 11, 15])
    func both(clientBits: Int, serverBits: Int) throws {
        for (clientKeeps, serverKeeps) in [(true, true), (true, false), (false, true)] {
            let client = Configuration(windowBits: clientBits, keepsContext: clientKeeps)
            let server = Configuration(windowBits: serverBits, keepsContext: serverKeeps)
            let offer = Sample.offer(compression: client)
            let request = try WebSocketRequest(
                HTTPRequestHead(parsing: WebSocketHandshake.request(offer)))
            let (agreed, answer) = try WebSocketHandshake.acceptance(
                of: request, accept: Sample.accept, subprotocol: nil, fields: [],
                compression: server)
            let ours = try WebSocketHandshake.agreement(
                HTTPResponseHead(parsing: answer), to: offer, accept: Sample.accept)
            #expect(ours == agreed)
            #expect(ours.deflate != nil)
        }
    }

    @Test(
        "BR-041 window bits: messages go both ways with the window that was agreed on",
        arguments: 8...15)
    func messages(bits: Int) throws {
        let deflate = try Sample.deflate(
            "permessage-deflate; server_max_window_bits=\(bits); client_max_window_bits=\(bits)")
        let configuration = Configuration(windowBits: 15)
        var client = WebSocketSession(.client, deflate: deflate, compression: configuration)
        var server = WebSocketSession(.server, deflate: deflate, compression: configuration)
        for size in [0, 5, 300, 5_000, 20_000, 300] {
            let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 / 300 &* $0) }
            let up = client.frame(.binary(bytes), key: 0x0403_0201)
            #expect(up.first == 0xC2)
            #expect(server.hear(up) == Heard(.binary(bytes)))
            #expect(client.hear(server.frame(.binary(bytes))) == Heard(.binary(bytes)))
        }
    }
}
