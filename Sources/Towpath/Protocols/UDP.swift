/// UDP, udp(7), or, to a Unix endpoint, Unix datagrams.
///
/// Each option is applied when the connection or listener opens and fails it with
/// ``NetworkError/Code/optionFailed`` if the kernel refuses it.
public struct UDP: DatagramProtocol {
    /// Who may cut a datagram that is larger than the path takes.
    public enum Fragmentation: Sendable {
        /// The kernel's default: this host fragments where it knows that the path takes less.
        case byPath
        /// This host and, on IPv4, every router on the way.
        case allowed
        /// Nobody: a datagram too large fails with ``NetworkError/Code/messageTooLong``.
        case prohibited
    }

    package var maximumReceiveSize = 65_535
    package var receiveTime = false
    package var noChecksum = false
    package var fragmentation: Fragmentation?
    package var connectionTimeout: Duration = .seconds(30)
    package var idleTimeout: Duration? = .seconds(60)
    package var peerLimit = 65_536
    package var queueLimit = 256

    /// UDP with the options' defaults.
    public init() {}

    /// UDP alone.
    public var stack: ProtocolStack { ProtocolStack(transport: .udp(self)) }

    /// The largest datagram that is received whole; of a larger one the beginning comes, marked as
    /// truncated. 1 to 65,535 bytes. Default: 65,535, which only a Unix datagram can exceed.
    public func maximumReceiveSize(_ byteCount: Int) -> UDP {
        with { $0.maximumReceiveSize = min(max(byteCount, 1), 65_535) }
    }

    /// Whether the kernel notes when each datagram arrived (SO_TIMESTAMPNS). Default: off, since it
    /// costs the host a clock reading per packet.
    public func receiveTime(_ enabled: Bool) -> UDP { with { $0.receiveTime = enabled } }

    /// Sends without a checksum (SO_NO_CHECK), on IPv4 only: RFC 8200 §8.1 wants one on IPv6.
    /// Default: off.
    public func noChecksum(_ enabled: Bool) -> UDP { with { $0.noChecksum = enabled } }

    /// Who may cut datagrams that are too large for the path (IP_MTU_DISCOVER). Default: `byPath`.
    public func fragmentation(_ choice: Fragmentation) -> UDP { with { $0.fragmentation = choice } }

    /// How long opening may take, which for UDP is resolving the name. Default: 30 s.
    public func connectionTimeout(_ limit: Duration) -> UDP {
        with { $0.connectionTimeout = limit }
    }

    /// On a listener: after how long without a datagram in either direction a peer's connection ends;
    /// nil for never. Default: 60 s.
    public func idleTimeout(_ limit: Duration?) -> UDP { with { $0.idleTimeout = limit } }

    /// On a listener: how many peers may have a connection; datagrams of others are dropped and
    /// counted. Default: 65,536.
    public func peerLimit(_ count: Int) -> UDP { with { $0.peerLimit = max(count, 1) } }

    /// On a listener: how many datagrams of one peer wait to be received; later ones are dropped and
    /// counted. Default: 256.
    public func queueLimit(_ count: Int) -> UDP { with { $0.queueLimit = max(count, 1) } }

    private func with(_ change: (inout UDP) -> Void) -> UDP {
        var copy = self
        change(&copy)
        return copy
    }
}
