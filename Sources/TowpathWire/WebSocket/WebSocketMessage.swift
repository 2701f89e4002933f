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

extension WebSocketCloseStatus {
    /// Reads a Close frame's payload (RFC 6455 §5.5.1).
    init(_ payload: [UInt8]) throws(WebSocketError) {
        guard !payload.isEmpty else {
            self.init(.noStatusReceived)
            return
        }
        guard payload.count >= 2 else { throw .violation("a Close frame has half a code") }
        let code = WebSocketCloseCode(rawValue: UInt16(payload[0]) << 8 | UInt16(payload[1]))
        guard code.isSendable else { throw .violation("a Close frame has the code \(code)") }
        var validator = UTF8Validator()
        let isValid = payload.withUnsafeBytes {
            validator.consume(UnsafeRawBufferPointer(rebasing: $0[2...]))
        }
        guard isValid, validator.isComplete else {
            throw WebSocketError(.invalidFramePayloadData, "a reason is not UTF-8")
        }
        self.init(code, String(decoding: payload[2...], as: UTF8.self))
    }

    /// The payload of a Close frame that says this; of one without a code, none.
    package var payload: [UInt8] {
        guard code.isSendable else { return [] }
        let text = Array(reason.utf8)
        var count = min(text.count, 123)
        // Not in the middle of a character.
        while count < text.count, text[count] & 0xC0 == 0x80 { count -= 1 }
        return [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)] + text[..<count]
    }
}
