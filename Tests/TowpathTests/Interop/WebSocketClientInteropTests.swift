import Foundation
import TestSupport
import Testing
import Towpath

@Suite(
    "A WebSocket listener and clients of others",
    .enabled(if: !WebSocketPeer.available.isEmpty), .timeLimit(.minutes(2)))
struct WebSocketClientInteropTests {
    private func expectWhole(
        _ client: Program, _ peer: WebSocketPeer, _ compressions: Compressions,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let expected =
            [compressions.opened] + Array(repeating: "same", count: 5)
            + (peer.pings ? ["pong"] : []) + ["closed 3001 bye"]
        let end = try await client.end()
        #expect(
            end.output.split(separator: "\n").map(String.init) == expected, "\(end)",
            sourceLocation: sourceLocation)
    }

    @Test(
        "messages come back with their type, compressed if both sides want that, and the close too",
        arguments: WebSocketPeer.available, Compressions.all)
    func echoes(peer: WebSocketPeer, compressions: Compressions) async throws {
        let listener = try await Listener(on: .loopback()) {
            WebSocket { TCP() }.compressing(compressions.ours)
        }
        let ends = Inbox<WebSocketEnd>()
        try await WebSocketSamples.echoing(listener, ends: ends) {
            let client = try peer.client(
                compresses: compressions.theirs, "ws://\(listener.localEndpoint)/", "echo")
            try await expectWhole(client, peer, compressions)
            let end = try await ends.next()
            #expect(end.code?.rawValue == 3001 && end.reason == "bye")
            #expect(end.error != nil)
        }
    }

    @Test(
        "the same over TLS", .enabled(if: TLSFiles.areAvailable), arguments: WebSocketPeer.available
    )
    func secure(peer: WebSocketPeer) async throws {
        let files = try await TLSFiles.get()
        let identity = try files.identity("server")
        let listener = try await Listener(on: .loopback()) {
            WebSocket { TLS(identity: identity) }
        }
        try await WebSocketSamples.echoing(listener) {
            let client = try peer.client(
                "wss://localhost:\(listener.port)/", "echo", root: files.path("root.pem"))
            try await expectWhole(client, peer, Compressions(ours: true, theirs: true))
        }
    }

    @Test(
        "the client sees the code and the reason that we close with",
        arguments: WebSocketPeer.available, [1000, 3001])
    func closes(peer: WebSocketPeer, code: UInt16) async throws {
        let listener = try await Listener(on: .loopback()) { WebSocket { TCP() } }
        try await WebSocketSamples.echoing(listener) {
            let client = try peer.client(
                "ws://\(listener.localEndpoint)/", "close \(code) so l\u{F6}ng")
            let end = try await client.end()
            #expect(end.output == "open deflate\nclosed \(code) so l\u{F6}ng\n", "\(end)")
        }
    }

    @Test("our ping is answered", arguments: WebSocketPeer.available)
    func pings(peer: WebSocketPeer) async throws {
        let listener = try await Listener(on: .loopback()) { WebSocket { TCP() } }
        try await serving(listener) { connection in
            _ = try await connection.receive()
            let duration = try await connection.ping()
            try await connection.send(.text(duration > .zero ? "pong" : "too early"))
            try await connection.close(code: .normalClosure, reason: "")
        } while: {
            let client = try peer.client("ws://\(listener.localEndpoint)/", "hello")
            let end = try await client.end()
            #expect(end.output == "open deflate\npong\nclosed 1000 \n", "\(end)")
        }
    }

    @Test("a client is told when the listener drains", arguments: WebSocketPeer.available)
    func drains(peer: WebSocketPeer) async throws {
        let listener = try await Listener(on: .loopback()) { WebSocket { TCP() } }
        let opened = Inbox<Void>()
        try await serving(listener) { connection in
            for try await message in connection.messages(untilDrain: true) {
                try await connection.send(message)
                opened.send()
            }
            try await connection.close(code: .goingAway, reason: "bye")
        } while: {
            let client = try peer.client("ws://\(listener.localEndpoint)/", "hello")
            try await opened.next()
            listener.drain(within: .seconds(60))
            let end = try await client.end()
            #expect(end.output == "open deflate\nhello\nclosed 1001 bye\n", "\(end)")
        }
    }
}
