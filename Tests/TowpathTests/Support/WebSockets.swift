import TestSupport
import Testing
import Towpath
import TowpathTLS
import TowpathWire

/// A listener for WebSockets, and clients for it.
struct WebSocketServer: Sendable {
    let listener: Listener<WebSocket>
    let events = Inbox<ListenerEvent>()

    init(_ webSocket: WebSocket = WebSocket()) async throws {
        listener = try await Listener(on: .loopback()) { webSocket }
        let events = events
        listener.onEvent { events.send($0) }
    }

    func client(
        _ path: String = "/", _ change: (WebSocket) -> WebSocket = { $0 }
    ) -> Connection<WebSocket> {
        let webSocket = change(WebSocket(path: path))
        return Connection(to: listener.localEndpoint) { webSocket }
    }

    /// A TCP connection to it.
    func plainClient() -> Connection<TCP> { Connection(to: listener.localEndpoint) { TCP() } }

    /// A client that asked for a WebSocket by hand, and was answered.
    func handmadeClient() async throws -> Connection<TCP> {
        let client = plainClient()
        try await client.send(HandmadeWebSocket.request.utf8)
        let head = try await client.receive(until: "\r\n\r\n".utf8, limit: 4_096)
        #expect(String(decoding: head, as: UTF8.self).hasPrefix("HTTP/1.1 101 "))
        return client
    }

    func serve<Value: Sendable>(
        _ handler: @escaping @Sendable (Connection<WebSocket>) async throws -> Void = echoMessages,
        while body: () async throws -> Value
    ) async throws -> Value {
        try await serving(listener, handler, while: body)
    }

    /// The next request that came to nothing.
    func failedHandshake() async throws -> NetworkError {
        while true {
            if case .handshakeFailed(let error, _) = try await events.next() { return error }
        }
    }
}

@Sendable func echoMessages(_ connection: Connection<WebSocket>) async throws {
    for try await message in connection.messages { try await connection.send(message) }
}

/// A server of TCP that answers as the test wants, for one client.
struct HandmadeServer: Sendable {
    let listener: Listener<TCP>

    init() async throws { listener = try await Listener(on: .loopback()) { TCP() } }

    func client(_ webSocket: WebSocket = WebSocket()) -> Connection<WebSocket> {
        Connection(to: listener.localEndpoint) { webSocket }
    }

    /// Runs `handler` with the client's request and the key's answer.
    func serve<Value: Sendable>(
        _ handler: @escaping @Sendable (Connection<TCP>, _ accept: String) async throws -> Void,
        while body: () async throws -> Value
    ) async throws -> Value {
        try await serving(
            listener,
            { connection in
                let head = try await connection.receive(until: "\r\n\r\n".utf8, limit: 65_536)
                let text = String(decoding: head, as: UTF8.self)
                let line = try #require(
                    text.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") })
                try await handler(
                    connection, HandmadeWebSocket.accept(String(line.dropFirst(19))))
            }, while: body)
    }
}

/// Frames and heads, byte by byte.
enum HandmadeWebSocket {
    static let request = request("dGhlIHNhbXBsZSBub25jZQ==")

    static func request(_ key: String, _ target: String = "/") -> String {
        "GET \(target) HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\n"
            + "Connection: Upgrade\r\nSec-WebSocket-Key: \(key)\r\nSec-WebSocket-Version: 13\r\n\r\n"
    }

    static func accept(_ key: String) -> String {
        Base64.encode(Digest.sha1(Array((key + WebSocketHandshake.guid).utf8)))
    }

    static func answer(_ accept: String) -> String {
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Accept: \(accept)\r\n\r\n"
    }

    /// A client's frame of up to 125 bytes, with a key of zeros.
    static func masked(_ first: UInt8, _ payload: [UInt8] = []) -> [UInt8] {
        [first, 0x80 | UInt8(payload.count), 0, 0, 0, 0] + payload
    }
}
