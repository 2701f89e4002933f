import TestSupport
import Testing
import Towpath

@Suite("Values as messages", .timeLimit(.minutes(1)))
struct CoderTests {
    struct Question: Codable, Sendable, Equatable {
        var text: String
        var number = 0
    }

    struct Answer: Codable, Sendable, Equatable {
        var text: String
    }

    /// Serves answers to questions while `body` runs.
    private static func serving<Codec: NetworkCoder>(
        _ server: Coder<Answer, Question, Codec>, while body: (Endpoint) async throws -> Void
    ) async throws {
        let listener = try await Listener(on: .loopback()) { server }
        try await TowpathTests.serving(listener) { connection in
            while true {
                do {
                    guard let question = try await connection.receive() else { return }
                    try await connection.send(Answer(text: question.text.uppercased()))
                } catch let error as NetworkError where error.code == .codingFailed {
                    try await connection.send(Answer(text: "what?"))
                }
            }
        } while: {
            try await body(listener.localEndpoint)
        }
    }

    private static func ask<Codec: NetworkCoder>(
        _ client: Connection<Coder<Question, Answer, Codec>>
    ) async throws {
        for number in 0..<3 {
            try await client.send(Question(text: "ä \(number)"))
            expectEqual(try await client.receive(), Answer(text: "Ä \(number)"))
        }
        await client.close()
    }

    @Test("JSON over TCP, each value behind its length")
    func overTCP() async throws {
        try await Self.serving(Coder(sending: Answer.self, receiving: Question.self, using: .json))
        {
            endpoint in
            try await Self.ask(
                Connection(to: endpoint) {
                    Coder(sending: Question.self, receiving: Answer.self, using: .json)
                })
            let plain = Connection(to: endpoint) { TCP() }
            try await plain.send(
                [0, 0, 0, 1, 33, 0, 0, 0, 23] + Array(#"{"text":"a","number":1}"#.utf8))
            let answer =
                [0, 0, 0, 16] + Array(#"{"text":"what?"}"#.utf8)
                + [0, 0, 0, 12] + Array(#"{"text":"A"}"#.utf8)
            expectEqual(try await plain.receive(exactly: answer.count), answer)
            await plain.close()
        }
    }

    @Test("property lists over TLS")
    func overTLS() async throws {
        let authority = try TestAuthority()
        let identity = try authority.issue("IP:127.0.0.1")
        let server = Coder(sending: Answer.self, receiving: Question.self, using: .propertyList) {
            TLS(identity: identity)
        }
        try await Self.serving(server) { endpoint in
            try await Self.ask(
                Connection(to: endpoint) {
                    Coder(sending: Question.self, receiving: Answer.self, using: .propertyList) {
                        TLS().trust(anchors: [authority.certificate])
                    }
                })
        }
    }

    @Test("JSON as a WebSocket's text, property lists as its binary messages")
    func overWebSocket() async throws {
        let server = Coder(sending: Answer.self, receiving: Question.self, using: .json) {
            WebSocket()
        }
        try await Self.serving(server) { endpoint in
            try await Self.ask(
                Connection(to: endpoint) {
                    Coder(sending: Question.self, receiving: Answer.self, using: .json) {
                        WebSocket()
                    }
                })
            let plain = Connection(to: endpoint) { WebSocket() }
            try await plain.send(.text("no JSON"))
            expectEqual(try await plain.receive(), .text(#"{"text":"what?"}"#))
            try await plain.send(.binary(Array(#"{"text":"b","number":1}"#.utf8)))
            expectEqual(try await plain.receive(), .text(#"{"text":"B"}"#))
            await plain.close()
        }
        let plain = try await WebSocketServer()
        try await plain.serve {
            let client = Connection(to: plain.listener.localEndpoint) {
                Coder(Answer.self, using: .propertyList) { WebSocket() }
            }
            try await client.send(Answer(text: "itself"))
            expectEqual(try await client.receive(), Answer(text: "itself"))
            await client.close()
        }
    }

    @Test("JSON in datagrams")
    func overUDP() async throws {
        let server = Coder(sending: Answer.self, receiving: Question.self, using: .json) { UDP() }
        try await Self.serving(server) { endpoint in
            try await Self.ask(
                Connection(to: endpoint) {
                    Coder(sending: Question.self, receiving: Answer.self, using: .json) { UDP() }
                })
        }
    }

    @Test("what cannot be coded, or is too long, is not sent, and the connection goes on")
    func unfit() async throws {
        let (left, right) = try Streams.socketPair()
        let connection = try Connection(adopting: left) {
            Coder(Double.self, using: .json).maximumMessageSize(10)
        }
        let peer = try Connection(adopting: right) { TCP() }
        let error = await Streams.failure { try await connection.send(.infinity) }
        #expect(error?.code == .codingFailed && error?.stage == .send)
        let long = await Streams.failure { try await connection.send(1.0 / 3) }
        #expect(long?.code == .messageTooLong && long?.stage == .send)
        try await connection.send(0.5)
        expectEqual(try await peer.receive(), [0, 0, 0, 3] + Array("0.5".utf8))
        // Refused by its length alone.
        try await peer.send([0, 0, 0, 11])
        let received = await Streams.failure { try await connection.receive() }
        #expect(received?.code == .messageTooLong && received?.stage == .receive)
    }
}
