import Testing
import TowpathWire

/// The example of RFC 6455 §1.3, to be altered.
enum Sample {
    static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    static let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

    static let request = [
        "GET /chat HTTP/1.1", "Host: server.example.com", "Upgrade: websocket",
        "Connection: Upgrade", "Sec-WebSocket-Key: \(key)", "Sec-WebSocket-Version: 13",
    ]
    static let response = [
        "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Accept: \(accept)",
    ]

    /// The lines without those of a field, and with these.
    static func lines(
        _ lines: [String], without name: String? = nil, with added: [String] = []
    ) -> [UInt8] {
        let kept = lines.filter { line in name.map { !line.hasPrefix("\($0):") } ?? true }
        return head(kept + added)
    }

    /// A head of these lines.
    static func head(_ lines: [String]) -> [UInt8] {
        Array((lines.map { "\($0)\r\n" }.joined() + "\r\n").utf8)
    }

    static func offer(
        _ subprotocols: [String] = [], compression: PermessageDeflate.Configuration? = nil,
        fields: HTTPFields = []
    ) -> WebSocketHandshake.Offer {
        var offer = WebSocketHandshake.Offer(
            target: "/chat", host: "server.example.com", key: key)
        offer.subprotocols = subprotocols
        offer.compression = compression
        offer.fields = fields
        return offer
    }

    /// What a client makes of an answer without the field and with the lines.
    static func agreement(
        _ offer: WebSocketHandshake.Offer = offer(), without name: String? = nil,
        with added: [String] = []
    ) throws -> WebSocketHandshake.Agreement {
        let head = try HTTPResponseHead(parsing: lines(response, without: name, with: added))
        return try WebSocketHandshake.agreement(head, to: offer, accept: accept)
    }

    /// What a server makes of a request without the field and with the lines.
    static func request(
        without name: String? = nil, with added: [String] = []
    ) throws -> WebSocketRequest {
        try WebSocketRequest(
            HTTPRequestHead(parsing: lines(request, without: name, with: added)))
    }

    /// What a server answers to a request with these extensions, and what it agrees to.
    static func acceptance(
        extensions: String?, subprotocol: String? = nil, fields: HTTPFields = [],
        _ compression: PermessageDeflate.Configuration? = .init(windowBits: 15)
    ) throws -> (agreement: WebSocketHandshake.Agreement, head: HTTPResponseHead) {
        let added = extensions.map { ["Sec-WebSocket-Extensions: \($0)"] } ?? []
        let (agreement, bytes) = try WebSocketHandshake.acceptance(
            of: request(with: added), accept: accept, subprotocol: subprotocol, fields: fields,
            compression: compression)
        return (agreement, try HTTPResponseHead(parsing: bytes))
    }

    /// What a server of any window agrees to on this offer.
    static func deflate(
        _ offer: String = "permessage-deflate; client_max_window_bits"
    ) throws -> PermessageDeflate {
        try #require(acceptance(extensions: offer).agreement.deflate)
    }
}
