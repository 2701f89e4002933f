/// A client's request for a WebSocket (RFC 6455 §4.1), as a server sees it.
public struct WebSocketRequest: Hashable, Sendable {
    /// The path and query that are asked for: `/chat?room=1`.
    public let target: String
    /// All fields of the request.
    public let fields: HTTPFields
    /// The subprotocols that the client offers, the preferred one first.
    public let subprotocols: [String]

    package let key: String
    let extensions: [HTTPParameterized]

    /// The path without the query.
    public var path: String { String(target.prefix { $0 != "?" }) }
    /// The host that is asked for.
    public var host: String? { fields["Host"] }
    /// The site of the page that asks, if a browser does (RFC 6454): check it where cookies or the network
    /// itself admit somebody.
    public var origin: String? { fields["Origin"] }
}

/// What a server answers to a request for a WebSocket.
public struct WebSocketResponse: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case accepted(subprotocol: String?)
        case refused(status: Int, body: String)
    }

    package let kind: Kind
    package let fields: HTTPFields

    /// Accepts it.
    ///
    /// - Parameters:
    ///   - subprotocol: One of those that the client offered; nil for none.
    ///   - fields: Further fields of the answer.
    public static func accept(
        subprotocol: String? = nil, fields: HTTPFields = []
    ) -> WebSocketResponse {
        WebSocketResponse(kind: .accepted(subprotocol: subprotocol), fields: fields)
    }

    /// Refuses it, with a status such as 403 or 404, and closes the connection.
    public static func refuse(
        status: Int, fields: HTTPFields = [], body: String = ""
    ) -> WebSocketResponse {
        WebSocketResponse(kind: .refused(status: status, body: body), fields: fields)
    }
}

/// Why a request is none for a WebSocket, and what is answered.
package struct WebSocketRefusal: Error, Hashable, Sendable {
    package let status: Int
    package let message: String
    package let fields: HTTPFields

    package init(status: Int, message: String, fields: HTTPFields = []) {
        self.status = status
        self.message = message
        self.fields = fields
    }
}

extension WebSocketRequest {
    /// A request that follows RFC 6455 §4.2.1, or why it does not.
    package init(_ head: HTTPRequestHead) throws(WebSocketRefusal) {
        func refuse(_ status: Int, _ message: String) -> WebSocketRefusal {
            WebSocketRefusal(status: status, message: message)
        }
        guard head.fields.values(of: "Host").count == 1 || head.minorVersion == 0 else {
            throw refuse(400, "a request has one Host field")
        }
        guard
            HTTPFields.members(head.fields.values(of: "Upgrade")).contains(where: {
                $0.isSame(as: "websocket")
            })
        else {
            throw WebSocketRefusal(
                status: 426, message: "this is a WebSocket",
                fields: [HTTPField("Upgrade", "websocket"), HTTPField("Connection", "Upgrade")])
        }
        guard head.method == "GET", head.minorVersion == 1 else {
            throw refuse(400, "a WebSocket is asked for with GET and HTTP/1.1")
        }
        // Its body would be read as frames.
        guard head.fields.values(of: "Content-Length").allSatisfy({ $0 == "0" }),
            head.fields.values(of: "Transfer-Encoding").isEmpty
        else { throw refuse(400, "a request for a WebSocket has no body") }
        guard let target = Self.originForm(head.target) else {
            throw refuse(400, "the target is no path")
        }
        guard
            HTTPFields.members(head.fields.values(of: "Connection")).contains(where: {
                $0.isSame(as: "upgrade")
            })
        else { throw refuse(400, "Connection does not name Upgrade") }
        guard head.fields.values(of: "Sec-WebSocket-Version") == ["13"] else {
            throw WebSocketRefusal(
                status: 426, message: "the version is 13",
                fields: [
                    HTTPField("Sec-WebSocket-Version", "13"), HTTPField("Upgrade", "websocket"),
                    HTTPField("Connection", "Upgrade"),
                ])
        }
        let keys = head.fields.values(of: "Sec-WebSocket-Key")
        guard let key = keys.first, keys.count == 1, Self.isKey(key) else {
            throw refuse(400, "Sec-WebSocket-Key is not base64 of 16 bytes")
        }
        let offered = head.fields.values(of: "Sec-WebSocket-Protocol")
        guard let subprotocols = HTTPParameterized.tokens(offered),
            Set(subprotocols).count == subprotocols.count
        else { throw refuse(400, "Sec-WebSocket-Protocol is no list of different tokens") }
        let extensions = head.fields.values(of: "Sec-WebSocket-Extensions")
        guard let extensions = HTTPParameterized.extensions(extensions) else {
            throw refuse(400, "Sec-WebSocket-Extensions is malformed")
        }
        self.target = target
        fields = head.fields
        self.subprotocols = subprotocols
        self.key = key
        self.extensions = extensions
    }

    /// A path with its query, of a target that is one or a whole URL (RFC 9112 §3.2).
    private static func originForm(_ target: String) -> String? {
        if target.utf8.first == UInt8(ascii: "/") { return target }
        for scheme in ["http://", "https://"] {
            guard String(target.prefix(scheme.count)).isSame(as: scheme) else { continue }
            let rest = target.dropFirst(scheme.count).drop { $0 != "/" && $0 != "?" }
            return rest.first == "/" ? String(rest) : "/" + rest
        }
        return nil
    }

    /// 22 digits of base64, the last one with four bits to spare, and `==`.
    private static func isKey(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count == 24, bytes[22...].elementsEqual("==".utf8) else { return false }
        return bytes[..<22].allSatisfy {
            switch $0 {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
                true
            default: false
            }
        } && "AQgw".utf8.contains(bytes[21])
    }
}

extension HTTPFields {
    /// The members of a list of names, such as of Connection and Upgrade, without the blanks around them.
    static func members(_ values: [String]) -> [String] {
        values.flatMap { value in
            value.utf8.split(separator: UInt8(ascii: ",")).map { member in
                var member = Array(member)[...]
                while let first = member.first, first.isBlank { member = member.dropFirst() }
                while let last = member.last, last.isBlank { member = member.dropLast() }
                return String(decoding: member, as: UTF8.self)
            }
        }
    }
}
