import Foundation
import TestSupport
import Testing
import Towpath

@Suite(
    "A WebSocket connection to servers of others",
    .enabled(if: !WebSocketPeer.available.isEmpty), .timeLimit(.minutes(2)))
struct WebSocketServerInteropTests {
    @Test(
        "messages come back with their type, compressed if both sides want that",
        arguments: WebSocketPeer.available, Compressions.all)
    func echoes(peer: WebSocketPeer, compressions: Compressions) async throws {
        let (server, port) = try await peer.server(compresses: compressions.theirs)
        let connection = Connection(to: .loopback(port)) {
            WebSocket { TCP() }.compressing(compressions.ours)
        }
        try await WebSocketSamples.expectEchoes(from: connection)
        #expect(connection.isCompressing == (compressions.ours && compressions.theirs))
        #expect(try await server.line() == compressions.opened)
        await connection.close()
        #expect(try await server.line() == "closed 1000 ")
    }

    @Test(
        "the server sees the code and the reason that we close with, and that we abort",
        arguments: WebSocketPeer.available)
    func closes(peer: WebSocketPeer) async throws {
        let (server, port) = try await peer.server()
        for code: UInt16 in [1000, 1001, 3001, 4999] {
            let connection = Connection(to: .loopback(port)) { WebSocket { TCP() } }
            try await connection.start()
            try await connection.close(code: WebSocketCloseCode(rawValue: code), reason: "b\u{FC}e")
            #expect(try await server.line() == "open deflate")
            #expect(try await server.line() == "closed \(code) b\u{FC}e")
        }
        let connection = Connection(to: .loopback(port)) { WebSocket { TCP() } }
        try await connection.start()
        connection.abort()
        #expect(try await server.line() == "open deflate")
        #expect(try await server.line() == "closed 1006 ")
    }

    @Test(
        "we see the code and the reason that the server closes with: an error unless all is well",
        arguments: WebSocketPeer.available)
    func closed(peer: WebSocketPeer) async throws {
        let (server, port) = try await peer.server()
        for code: UInt16 in [1000, 1001, 1002, 1011, 3001, 4999] {
            let connection = Connection(to: .loopback(port)) { WebSocket { TCP() } }
            try await connection.send(.text("close \(code) so l\u{F6}ng"))
            let error = await Streams.failure {
                for try await message in connection.messages { Issue.record("\(message)") }
            }
            #expect((error == nil) == (code <= 1001), "\(code): \(String(describing: error))")
            #expect(connection.closeStatus?.code.rawValue == code)
            #expect(connection.closeStatus?.reason == "so l\u{F6}ng")
            await connection.close()
            #expect(try await server.line() == "open deflate")
            // What we answered.
            #expect(try await server.line() == "closed \(code) so l\u{F6}ng")
        }
    }

    @Test(
        "pings are answered in both directions, before and behind messages; one who is killed is an error",
        arguments: WebSocketPeer.available)
    func pings(peer: WebSocketPeer) async throws {
        let (server, port) = try await peer.server()
        let connection = Connection(to: .loopback(port)) { WebSocket { TCP() } }
        #expect(try await connection.ping() > .zero)
        try await connection.send(.text("hello"))
        #expect(try await connection.receive() == .text("hello"))
        #expect(try await connection.ping() > .zero)
        if peer.pings {
            for _ in 0..<3 {
                try await connection.send(.text("ping"))
                #expect(try await connection.receive() == .text("pong"))
            }
        }
        server.signal(SIGKILL)
        let error = await Streams.failure { for try await _ in connection.messages {} }
        #expect(error != nil)
        #expect(connection.closeStatus?.code == .abnormalClosure)
    }
}
