/// TCP, tcp(7), or, to a Unix endpoint, a Unix stream, unix(7).
///
/// Each option is applied when the connection or listener opens and fails it with
/// ``NetworkError/Code/optionFailed`` if the kernel refuses it. An option of TCP fails a Unix
/// stream. Connections that a listener accepts have the listener's options.
public struct TCP: StreamProtocol {
    package struct Keepalive: Sendable {
        var idle: Duration
        var interval: Duration?
        var count: Int?
    }

    package var noDelay: Bool?
    package var keepalive: Keepalive?
    package var userTimeout: Duration?
    package var connectionTimeout: Duration = .seconds(30)
    package var fastOpen: Bool?
    package var maximumSegmentSize: Int?
    package var notSentLowWaterMark: Int?
    package var multipath = false

    /// TCP with the options' defaults.
    public init() {}

    /// TCP alone.
    public var stack: ProtocolStack { ProtocolStack(transport: .tcp(self)) }

    /// Whether small sends leave at once (TCP_NODELAY), rather than wait for an acknowledgement of
    /// earlier ones. Default: true; a send here is one write already.
    public func noDelay(_ enabled: Bool) -> TCP { with { $0.noDelay = enabled } }

    /// Probes a silent peer, and fails the connection if it does not answer (SO_KEEPALIVE).
    /// Default: off.
    ///
    /// - Parameters:
    ///   - idle: The silence before the first probe (TCP_KEEPIDLE), 1 s to 32,767 s; the kernel counts
    ///     whole seconds, and a fraction is rounded up.
    ///   - interval: The time between probes (TCP_KEEPINTVL), likewise; nil is the host's setting.
    ///   - count: How many unanswered probes end it (TCP_KEEPCNT), 1 to 127; nil is the host's.
    public func keepalive(idle: Duration, interval: Duration? = nil, count: Int? = nil) -> TCP {
        with { $0.keepalive = Keepalive(idle: idle, interval: interval, count: count) }
    }

    /// How long sent bytes may stay unacknowledged before the connection fails with
    /// ``NetworkError/Code/timedOut`` (TCP_USER_TIMEOUT, RFC 5482), in whole milliseconds.
    /// Default: the host's retransmission limit, about 15 minutes.
    public func userTimeout(_ limit: Duration) -> TCP { with { $0.userTimeout = limit } }

    /// How long opening may take, from the first use to ready: resolution, every attempt, handshakes.
    /// Default: 30 s.
    public func connectionTimeout(_ limit: Duration) -> TCP {
        with { $0.connectionTimeout = limit }
    }

    /// Sends the first bytes with the SYN where the peer gave a cookie earlier (RFC 7413,
    /// TCP_FASTOPEN_CONNECT; TCP_FASTOPEN on a listener). A repeated SYN can deliver them twice: only
    /// for first messages that may be. The host must allow it (net.ipv4.tcp_fastopen). Default: off.
    ///
    /// An unreachable peer is then noticed by the first send, not by `start()`.
    public func fastOpen(_ enabled: Bool) -> TCP { with { $0.fastOpen = enabled } }

    /// The largest segment, in bytes, that is sent and that the peer is asked to send (TCP_MAXSEG).
    /// Default: by the path.
    public func maximumSegmentSize(_ byteCount: Int) -> TCP {
        with { $0.maximumSegmentSize = byteCount }
    }

    /// Bytes that may wait unsent in the kernel before `send` waits (TCP_NOTSENT_LOWAT): small keeps
    /// what is sent fresh, large keeps the link busy. Default: the host's setting, no limit.
    public func notSentLowWaterMark(_ byteCount: Int) -> TCP {
        with { $0.notSentLowWaterMark = byteCount }
    }

    /// Multipath TCP (RFC 8684), which falls back to TCP where the peer does not know it. Which paths
    /// are used is the host's policy (ip-mptcp(8)). Default: off.
    public func multipath(_ enabled: Bool) -> TCP { with { $0.multipath = enabled } }

    private func with(_ change: (inout TCP) -> Void) -> TCP {
        var copy = self
        change(&copy)
        return copy
    }
}
