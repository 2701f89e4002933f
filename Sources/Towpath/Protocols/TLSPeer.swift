internal import TowpathTLS

/// The peer of a TLS connection, and what was agreed on with it.
public struct TLSPeer: Sendable {
    /// The version; nil before the handshake is over.
    public let version: TLSVersion?
    /// The cipher suite, by OpenSSL's name.
    public let cipherSuite: String
    /// The group of the key exchange; nil where there was none.
    public let group: String?
    /// What both speak (ALPN); nil if one of the two offered nothing.
    public let applicationProtocol: String?
    /// The name that the client asked for (SNI).
    public let serverName: String?
    /// Whether an earlier session was taken up again: then nothing was verified anew, and what was
    /// verified is that of the earlier one.
    public let isResumed: Bool
    /// What the peer sent, its own certificate first.
    public let certificates: [Certificate]
    /// From the peer's certificate to the anchor of trust; empty where nothing was verified, and of a
    /// resumed session.
    public let verifiedChain: [Certificate]

    init(_ engine: TLSEngine) {
        version = engine.isEstablished ? engine.version : nil
        cipherSuite = engine.cipherSuite
        group = engine.group
        applicationProtocol = engine.applicationProtocol
        serverName = engine.serverName
        isResumed = engine.isResumed
        certificates = engine.peerCertificates
        verifiedChain = engine.verifiedChain
    }
}
