/// Why a WebSocket was closed (RFC 6455 §7.4): one of the registered codes, or one of an application's
/// own, 3000 to 4999.
public struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The number.
    public let rawValue: UInt16

    /// A code by its number, whether it may be sent or not.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// 1000: the purpose was fulfilled.
    public static let normalClosure = Self(rawValue: 1000)
    /// 1001: the server goes down, or the page was left.
    public static let goingAway = Self(rawValue: 1001)
    /// 1002: the other side broke the rules of the protocol.
    public static let protocolError = Self(rawValue: 1002)
    /// 1003: a kind of message that cannot be accepted.
    public static let unsupportedData = Self(rawValue: 1003)
    /// 1005, never sent: the Close frame had no code.
    public static let noStatusReceived = Self(rawValue: 1005)
    /// 1006, never sent: the connection ended without a Close frame.
    public static let abnormalClosure = Self(rawValue: 1006)
    /// 1007: a text that is not UTF-8, or data that cannot be inflated.
    public static let invalidFramePayloadData = Self(rawValue: 1007)
    /// 1008: a message that breaks a policy.
    public static let policyViolation = Self(rawValue: 1008)
    /// 1009: a message that is too big.
    public static let messageTooBig = Self(rawValue: 1009)
    /// 1010: a client misses an extension.
    public static let mandatoryExtension = Self(rawValue: 1010)
    /// 1011: the server met something it did not expect.
    public static let internalServerError = Self(rawValue: 1011)
    /// 1012: the server restarts; come back later.
    public static let serviceRestart = Self(rawValue: 1012)
    /// 1013: the server is overloaded; come back later.
    public static let tryAgainLater = Self(rawValue: 1013)
    /// 1014: a gateway had a bad answer from the server behind it.
    public static let badGateway = Self(rawValue: 1014)
    /// 1015, never sent: the TLS handshake failed.
    public static let tlsHandshake = Self(rawValue: 1015)

    /// Whether it may stand in a Close frame: 1000 to 1003, 1007 to 1014, and 3000 to 4999.
    public var isSendable: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    /// The number.
    public var description: String { String(rawValue) }
}
