/// The opening handshake (RFC 6455 §4), of both sides.
package enum WebSocketHandshake {
    /// What is hashed behind the key (RFC 6455 §1.3).
    package static let guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    /// What both sides agreed on.
    package struct Agreement: Hashable, Sendable {
        package var subprotocol: String?
        package var deflate: PermessageDeflate?
    }

    /// What a client asks for.
    package struct Offer: Sendable {
        package var target: String
        package var host: String
        /// Base64 of 16 random bytes.
        package var key: String
        package var subprotocols: [String] = []
        package var compression: PermessageDeflate.Configuration?
        package var fields: HTTPFields = []

        package init(target: String, host: String, key: String) {
            self.target = target
            self.host = host
            self.key = key
        }
    }

    /// Names that the handshake writes itself.
    private static let reserved = [
        "Host", "Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version",
        "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions", "Sec-WebSocket-Accept",
        "Content-Length", "Transfer-Encoding",
    ]

    // MARK: The client

    /// The request (RFC 6455 §4.1), or why it cannot be made so.
    package static func request(_ offer: Offer) throws(HTTPError) -> [UInt8] {
        guard offer.target.utf8.first == UInt8(ascii: "/"),
            offer.target.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") })
        else {
            throw HTTPError(
                "the path \(offer.target.debugDescription) must begin with a slash, and be"
                    + " percent-encoded where URLs are")
        }
        guard offer.host.utf8.allSatisfy({ $0.isFieldCharacter && !$0.isBlank }) else {
            throw HTTPError("\(offer.host.debugDescription) is no host")
        }
        guard
            offer.subprotocols.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(\.isTokenCharacter) })
        else { throw HTTPError("a subprotocol is a token: \(offer.subprotocols)") }
        guard Set(offer.subprotocols).count == offer.subprotocols.count else {
            throw HTTPError("a subprotocol stands twice: \(offer.subprotocols)")
        }
        try check(offer.fields)
        var text = "GET \(offer.target) HTTP/1.1\r\nHost: \(offer.host)\r\nUpgrade: websocket\r\n"
        text += "Connection: Upgrade\r\nSec-WebSocket-Key: \(offer.key)\r\n"
        text += "Sec-WebSocket-Version: 13\r\n"
        if !offer.subprotocols.isEmpty {
            text += "Sec-WebSocket-Protocol: \(offer.subprotocols.joined(separator: ", "))\r\n"
        }
        if let compression = offer.compression {
            text += "Sec-WebSocket-Extensions: \(PermessageDeflate.offer(compression))\r\n"
        }
        for field in offer.fields { text += "\(field)\r\n" }
        return Array((text + "\r\n").utf8)
    }

    /// What a server's answer of status 101 agrees to (RFC 6455 §4.1).
    ///
    /// `Upgrade` must be `websocket` alone. A server that chooses none of the subprotocols offered is
    /// accepted.
    package static func agreement(
        _ head: HTTPResponseHead, to offer: Offer, accept: String
    ) throws(WebSocketError) -> Agreement {
        let fields = head.fields
        guard HTTPFields.members(fields.values(of: "Upgrade")).count == 1,
            fields["Upgrade"]?.isSame(as: "websocket") == true
        else { throw .violation("the answer does not upgrade to websocket") }
        guard
            HTTPFields.members(fields.values(of: "Connection")).contains(where: {
                $0.isSame(as: "upgrade")
            })
        else { throw .violation("Connection does not name Upgrade in the answer") }
        let accepts = fields.values(of: "Sec-WebSocket-Accept")
        guard accepts.count == 1, accepts[0].utf8.elementsEqual(accept.utf8) else {
            throw .violation("Sec-WebSocket-Accept is not the one that belongs to the key")
        }
        var agreement = Agreement()
        let subprotocols = fields.values(of: "Sec-WebSocket-Protocol")
        if let chosen = subprotocols.first {
            guard subprotocols.count == 1,
                offer.subprotocols.contains(where: { $0.utf8.elementsEqual(chosen.utf8) })
            else {
                throw .violation("the server chose a subprotocol that was not offered")
            }
            agreement.subprotocol = chosen
        }
        let values = fields.values(of: "Sec-WebSocket-Extensions")
        guard let extensions = HTTPParameterized.extensions(values), extensions.count <= 1 else {
            throw .violation("Sec-WebSocket-Extensions is malformed, or names several")
        }
        if let answer = extensions.first {
            guard let compression = offer.compression else {
                throw .violation("the server chose the extension \(answer.name), not offered")
            }
            agreement.deflate = try PermessageDeflate(accepting: answer, compression)
        }
        return agreement
    }

    // MARK: The server

    /// The answer that accepts a request (RFC 6455 §4.2.2), and what it agrees to.
    package static func acceptance(
        of request: WebSocketRequest, accept: String, subprotocol: String?, fields: HTTPFields,
        compression: PermessageDeflate.Configuration?
    ) throws(HTTPError) -> (Agreement, [UInt8]) {
        if let subprotocol,
            !request.subprotocols.contains(where: { $0.utf8.elementsEqual(subprotocol.utf8) })
        {
            throw HTTPError("the subprotocol \(subprotocol.debugDescription) was not offered")
        }
        try check(fields)
        var agreement = Agreement(subprotocol: subprotocol)
        var text =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        text += "Sec-WebSocket-Accept: \(accept)\r\n"
        if let subprotocol { text += "Sec-WebSocket-Protocol: \(subprotocol)\r\n" }
        if let compression,
            let (deflate, answer) = PermessageDeflate.accept(request.extensions, compression)
        {
            agreement.deflate = deflate
            text += "Sec-WebSocket-Extensions: \(answer)\r\n"
        }
        for field in fields { text += "\(field)\r\n" }
        return (agreement, Array((text + "\r\n").utf8))
    }

    /// An answer that refuses a request; the connection is closed behind it.
    package static func refusal(
        status: Int, fields: HTTPFields, body: String
    ) throws(HTTPError) -> [UInt8] {
        guard (300...599).contains(status) else {
            throw HTTPError("a refusal has a status from 300 to 599, not \(status)")
        }
        try check(fields, allowing: ["Upgrade", "Connection", "Sec-WebSocket-Version"])
        var text = "HTTP/1.1 \(status) \(reason(status))\r\n"
        for field in fields where !field.name.isSame(as: "Connection") { text += "\(field)\r\n" }
        let closes = fields.contains { $0.name.isSame(as: "Upgrade") } ? "Upgrade, close" : "close"
        text += "Connection: \(closes)\r\nContent-Length: \(body.utf8.count)\r\n"
        if !body.isEmpty, fields.values(of: "Content-Type").isEmpty {
            text += "Content-Type: text/plain; charset=utf-8\r\n"
        }
        return Array((text + "\r\n" + body).utf8)
    }

    private static func reason(_ status: Int) -> String {
        switch status {
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 503: "Service Unavailable"
        default: ""
        }
    }

    private static func check(
        _ fields: HTTPFields, allowing allowed: [String] = []
    ) throws(HTTPError) {
        for field in fields {
            guard field.isValid else {
                throw HTTPError(
                    "\(field.name.debugDescription) is no field: a name is a token, and a value has"
                        + " no control characters")
            }
            let isField = { (name: String) in name.isSame(as: field.name) }
            guard !reserved.contains(where: isField) || allowed.contains(where: isField) else {
                throw HTTPError("the handshake writes the field \(field.name) itself")
            }
        }
    }
}
