internal import TowpathReactor

extension Connection {
    /// The peer and what was agreed on with it; nil without TLS, before it is negotiated, and after the
    /// connection has ended.
    public var tlsPeer: TLSPeer? {
        if case .live(let core) = core { core.tlsPeer } else { nil }
    }

    /// Bytes that only the two sides of this TLS connection know (RFC 8446 §7.5, RFC 5705), such as to
    /// bind something else to it. Throws ``NetworkError/Code/notSupported`` without TLS.
    ///
    /// - Parameters:
    ///   - label: What they are for, as registered or beginning with `EXPERIMENTAL`.
    ///   - context: What else they shall depend on; TLS 1.2 tells none from an empty one.
    ///   - count: How many.
    public func exportKeyingMaterial(
        label: String, context: [UInt8]? = nil, count: Int
    ) throws(NetworkError) -> [UInt8] {
        try liveCore().exportKeyingMaterial(label: label, context: context, count: count)
    }
}

/// Which side of TLS one is, which may be another than of TCP.
public enum TLSRole: Sendable {
    /// The one that begins the handshake and checks the other.
    case client
    /// The one with an identity.
    case server
}

extension Connection where Top == TCP {
    /// Makes this plain connection a TLS one, as protocols with STARTTLS do: after both sides agreed to.
    ///
    /// - Parameters:
    ///   - tls: The options; those of its TCP have no effect.
    ///   - role: Which side to be. Default: the client of one that was opened, the server of one that a
    ///     listener accepted.
    ///   - timeout: How long it may take; by default TLS's handshake timeout.
    ///
    /// Nobody may send or receive meanwhile. Plain bytes that came early are refused with
    /// ``NetworkError/Code/handshakeFailed``: a stranger on the way could have put them there. If the
    /// handshake fails, the connection has failed. Both objects are the same secure connection then.
    public func upgrade(
        to tls: TLS, as role: TLSRole? = nil, timeout: Duration? = nil
    ) async throws -> Connection<TLS> {
        let core = try liveCore()
        let isServer = role.map { $0 == .server } ?? (listener != nil)
        let deadline = MonotonicClock.deadline(after: timeout ?? tls.handshakeTimeout)
        try await core.upgrade(
            to: tls, isServer: isServer, endpoint: try? core.plan?.endpoint.get(), until: deadline)
        return Connection<TLS>(core, listener: listener, origin: self)
    }
}
