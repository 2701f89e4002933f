import TestSupport
import Testing
import Towpath

@Suite("The opening handshake of WebSocket, on connections", .timeLimit(.minutes(1)))
struct WebSocketHandshakeTests {
    @Test("a listener sees the request, answers it, and serves several paths")
    func requests() async throws {
        let server = try await WebSocketServer(
            WebSocket().onRequest { request in
                switch request.path {
                case "/chat": .accept(subprotocol: request.subprotocols.last)
                case "/private":
                    .refuse(
                        status: 401, fields: [HTTPField("WWW-Authenticate", "Basic realm=\"a\"")])
                case "/moved": .refuse(status: 302, fields: [HTTPField("Location", "/chat")])
                default: .refuse(status: 404, body: "there is only /chat")
                }
            })
        try await server.serve { connection in
            try await connection.send(.text(connection.request?.target ?? ""))
            try await connection.send(.text(connection.request?.origin ?? ""))
        } while: {
            let client = server.client("/chat?room=1") {
                $0.subprotocols("first", "second").field("Origin", "https://a.example")
            }
            expectEqual(try await client.receive(), .text("/chat?room=1"))
            expectEqual(try await client.receive(), .text("https://a.example"))
            #expect(client.subprotocol == "second" && client.request == nil)
            await client.close()
            for (path, status) in [("/", 404), ("/private", 401), ("/moved", 302)] {
                let refused = server.client(path)
                let error = await Streams.failure { try await refused.start() }
                #expect(error?.code == .upgradeRefused && error?.stage == .upgrade)
                guard case .response(status, let fields)? = error?.cause else {
                    Issue.record("\(path): \(String(describing: error))")
                    continue
                }
                #expect(fields["location"] == (status == 302 ? "/chat" : nil))
                #expect((fields["www-authenticate"] != nil) == (status == 401))
                expectEqual(try await server.failedHandshake().code, .upgradeRefused)
            }
        }
    }

    @Test(
        "whoever asks for something else is told so in HTTP",
        arguments: [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 426),
            ("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 426),
            ("hello\r\n\r\n", 400), ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 400),
            ("GET  / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/1.1\r\nA : b\r\n\r\n", 400),
            (HandmadeWebSocket.request.replacing("Version: 13", with: "Version: 8"), 426),
            (HandmadeWebSocket.request.replacing("GET", with: "POST"), 400),
        ])
    func others(request: String, status: Int) async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let client = server.plainClient()
            try await client.send(request.utf8)
            var answer: [UInt8] = []
            for try await chunk in client.chunks { answer += chunk }
            let text = String(decoding: answer, as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1.1 \(status) ") && text.contains("close\r\n"), "\(text)")
            expectEqual(try await server.failedHandshake().code, .upgradeRefused)
        }
    }

    @Test(
        "R-11: a key that is not 16 bytes of base64 is refused",
        arguments: ["", "x", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZR==", "c2hvcnQ="])
    func keys(key: String) async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let client = server.plainClient()
            try await client.send(HandmadeWebSocket.request(key).utf8)
            let line = try await client.receive(until: "\r\n".utf8, limit: 100)
            #expect(String(decoding: line, as: UTF8.self).hasPrefix("HTTP/1.1 400 "))
            await client.close()
        }
    }

    @Test(
        "BR-046: one that leaves during the handshake frees its place",
        arguments: ["", "GE", String(HandmadeWebSocket.request.dropLast(2))])
    func leaves(request: String) async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let client = server.plainClient()
            try await client.start()
            if !request.isEmpty { try await client.send(request.utf8) }
            try await client.finish()
            expectEqual(try await server.failedHandshake().code, .endOfStream)
            try await Streams.until { server.listener.connectionCount == 0 }
            await client.close()
        }
    }

    @Test("BR-046: one that leaves while the answer is made, and one that does not go on")
    func leavesEarly() async throws {
        let gate = Inbox<Void>()
        let server = try await WebSocketServer(
            WebSocket().onRequest { _ in
                try? await gate.next()
                return .accept()
            })
        try await server.serve {
            let client = server.plainClient()
            try await client.send(HandmadeWebSocket.request.utf8)
            client.abort()
            gate.send()
            try await Streams.until { server.listener.connectionCount == 0 }
        }
        let slow = try await WebSocketServer(WebSocket().handshakeTimeout(.milliseconds(50)))
        try await slow.serve {
            let client = slow.plainClient()
            try await client.send("GET / HTTP/1.1\r\n".utf8)
            expectEqual(try await slow.failedHandshake().code, .timedOut)
            await client.close()
        }
    }

    @Test("a head that does not end is refused with 431")
    func hugeHead() async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let client = server.plainClient()
            let field = "A: " + String(repeating: "x", count: 70_000)
            try await client.send("GET / HTTP/1.1\r\n\(field)".utf8)
            let line = try await client.receive(until: "\r\n".utf8, limit: 100)
            #expect(String(decoding: line, as: UTF8.self).hasPrefix("HTTP/1.1 431 "))
            await client.close()
        }
    }

    @Test("messages that come together with the answer are kept, and interim answers passed over")
    func together() async throws {
        let server = try await HandmadeServer()
        try await server.serve { connection, accept in
            let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
            let head = Array((interim + HandmadeWebSocket.answer(accept)).utf8)
            try await connection.send(head + [0x81, 2, 0x68, 0x69, 0x81, 1])
            try await connection.send([0x21])
            _ = try await connection.receive()
        } while: {
            let client = server.client()
            expectEqual(try await client.receive(), .text("hi"))
            expectEqual(try await client.receive(), .text("!"))
            client.abort()
        }
    }

    @Test("messages that come together with the request are kept")
    func togetherWithRequest() async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let client = server.plainClient()
            try await client.send(
                Array(HandmadeWebSocket.request.utf8)
                    + HandmadeWebSocket.masked(0x81, [0x68, 0x69]))
            _ = try await client.receive(until: "\r\n\r\n".utf8, limit: 4_096)
            expectEqual(try await client.receive(exactly: 4), [0x81, 2, 0x68, 0x69])
            client.abort()
        }
    }

    enum WrongAnswer: CaseIterable, Sendable {
        case accept, noHTTP, subprotocol, status200

        func text(_ right: String) -> String {
            switch self {
            case .accept: right.replacing("Accept: ", with: "Accept: A")
            case .noHTTP: "SSH-2.0-OpenSSH\r\n\r\n"
            case .subprotocol: String(right.dropLast(2)) + "Sec-WebSocket-Protocol: x\r\n\r\n"
            case .status200: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
            }
        }
    }

    @Test(
        "a wrong answer ends the opening, and says what is wrong", arguments: WrongAnswer.allCases)
    func wrongAnswers(wrong: WrongAnswer) async throws {
        let server = try await HandmadeServer()
        try await server.serve { connection, accept in
            try await connection.send(wrong.text(HandmadeWebSocket.answer(accept)).utf8)
            _ = try await connection.receive()
        } while: {
            let client = server.client()
            let error = await Streams.failure { try await client.start() }
            #expect(error?.code == (wrong == .status200 ? .upgradeRefused : .protocolViolation))
            #expect(error?.stage == .upgrade)
            if case .failed = client.state {} else { Issue.record("\(client.state)") }
        }
    }

    @Test(
        "a path, a field or a subprotocol that cannot be is an error of the option",
        arguments: [
            WebSocket(path: "chat"), WebSocket(path: "/a b"), WebSocket(path: "/a\r\nX: y"),
            WebSocket().field("A", "b\r\nc: d"), WebSocket().field("Host", "x"),
            WebSocket().subprotocols("a b"),
        ])
    func wrongOptions(webSocket: WebSocket) async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let client = Connection(to: server.listener.localEndpoint) { webSocket }
            expectEqual(await Streams.failure { try await client.start() }?.code, .optionFailed)
        }
    }

    @Test("a listener that drains closes with 1001, and one whose handler fails with 1011")
    func ends() async throws {
        let server = try await WebSocketServer()
        struct Failure: Error {}
        try await server.serve { connection in
            for try await message in connection.messages(untilDrain: true) {
                if message == .text("fail") { throw Failure() }
                try await connection.send(message)
            }
        } while: {
            let failing = server.client()
            try await failing.send(.text("fail"))
            _ = await Streams.failure { try await failing.receive() }
            #expect(failing.closeStatus?.code == .internalServerError)
            let client = server.client()
            try await client.send(.text("x"))
            expectEqual(try await client.receive(), .text("x"))
            server.listener.drain(within: .seconds(20))
            for try await _ in client.messages {}
            #expect(client.closeStatus?.code == .goingAway)
            await client.close()
        }
    }
}
