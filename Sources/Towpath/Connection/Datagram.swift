/// One datagram as it was received: its bytes and what came with it.
public struct Datagram: Sendable {
    /// Explicit congestion notification, RFC 3168.
    public enum ECN: UInt8, Sendable {
        /// The sender does not take part.
        case notCapable = 0
        /// ECT(1).
        case capable1 = 1
        /// ECT(0).
        case capable0 = 2
        /// A router on the way was congested.
        case congestionExperienced = 3
    }

    /// The content, possibly of zero length.
    public let bytes: [UInt8]
    /// Whether the datagram was longer than ``UDP/maximumReceiveSize(_:)`` and this is its beginning.
    public let isTruncated: Bool
    /// Who sent it; nil for an unnamed Unix socket.
    public let remoteEndpoint: Endpoint?
    /// Where it was sent to.
    public let localEndpoint: Endpoint?
    /// What the routers said of congestion.
    public let ecn: ECN
    /// When the kernel received it, since 1970-01-01 00:00 UTC, if ``UDP/receiveTime(_:)`` asks for it.
    public let receiveTime: Duration?
}
