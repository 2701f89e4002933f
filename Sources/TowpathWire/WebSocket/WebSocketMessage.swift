/// A message of a WebSocket, whole.
public enum WebSocketMessage: Hashable, Sendable {
    /// Text, which goes as UTF-8.
    case text(String)
    /// Any bytes.
    case binary([UInt8])

    /// How many bytes the payload has.
    public var byteCount: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .binary(let bytes): bytes.count
        }
    }

    /// The payload: a text's UTF-8, or the bytes.
    public var bytes: [UInt8] {
        switch self {
        case .text(let text): Array(text.utf8)
        case .binary(let bytes): bytes
        }
    }
}

/// Why a WebSocket ended, as its Close frame says.
public struct WebSocketCloseStatus: Hashable, Sendable, CustomStringConvertible {
    /// The code; ``WebSocketCloseCode/noStatusReceived`` if the frame had none.
    public let code: WebSocketCloseCode
    /// What the peer says of it, for people; at most 123 bytes.
    public let reason: String

    package init(_ code: WebSocketCloseCode, _ reason: String = "") {
        self.code = code
        self.reason = reason
    }

    /// `1001, server restarts`.
    public var description: String { reason.isEmpty ? "\(code)" : "\(code), \(reason)" }
}

/// The peer broke the rules: what it is told in the Close frame, and what is said of it here.
package struct WebSocketError: Error, Hashable, Sendable {
    package let code: WebSocketCloseCode
    package let message: String

    init(_ code: WebSocketCloseCode, _ message: String) {
        self.code = code
        self.message = message
    }

    static func violation(_ message: String) -> WebSocketError {
        WebSocketError(.protocolError, message)
    }
}
