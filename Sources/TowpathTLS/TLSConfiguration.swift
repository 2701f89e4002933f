/// A version of TLS.
public enum TLSVersion: Int32, Sendable, Comparable, CustomStringConvertible {
    /// RFC 5246.
    case tls12 = 0x0303
    /// RFC 8446.
    case tls13 = 0x0304

    /// The older one is less.
    public static func < (left: TLSVersion, right: TLSVersion) -> Bool {
        left.rawValue < right.rawValue
    }

    /// Such as `TLS 1.3`.
    public var description: String { self == .tls12 ? "TLS 1.2" : "TLS 1.3" }
}

/// Everything that two connections must have in common to share a context, and to resume each other's
/// sessions.
package struct TLSConfiguration: Hashable, Sendable {
    package enum Role: Sendable { case client, server }

    package enum Trust: Hashable, Sendable {
        case system
        case anchors([Certificate])
    }

    /// What the peer has to prove.
    package enum Verification: Hashable, Sendable {
        /// That it owns a certificate which the trust anchors vouch for; a server, for its name.
        case full
        /// That it owns a key that is pinned, for a server that signed its certificate itself.
        case pinnedKeyOnly
        case none
    }

    /// Whether a client has to show a certificate.
    package enum ClientAuthentication: Sendable { case none, optional, required }

    /// What is asked for of the server's OCSP staple (RFC 6066 §8).
    package enum Staple: Sendable { case ignored, requested, required }

    package struct PreSharedKey: Hashable, Sendable {
        package let identity: String
        package let key: [UInt8]

        package init(identity: String, key: [UInt8]) {
            self.identity = identity
            self.key = key
        }
    }

    package var role: Role
    package var minimumVersion = TLSVersion.tls12
    package var maximumVersion = TLSVersion.tls13
    /// By OpenSSL's names; those that begin with `TLS_` are of TLS 1.3.
    package var cipherSuites: [String] = []
    package var groups: [String] = []
    package var applicationProtocols: [String] = []
    package var trust = Trust.system
    package var isStrict = false
    package var allowsPartialChains = false
    package var revocationLists: [[UInt8]] = []
    package var staple = Staple.ignored
    package var verification = Verification.full
    package var clientAuthentication = ClientAuthentication.none
    /// A client's own, or those among which a server chooses by name, the first one by default.
    package var identities: [Identity] = []
    /// DER, sent by a server with its certificate.
    package var stapledResponse: [UInt8] = []
    package var pins: PinSet?
    package var preSharedKeys: [PreSharedKey] = []
    package var resumesSessions = true
    package var ticketCount = 1
    package var keyLogFile: String?
    /// The peer's certificates wait for somebody's own verdict.
    package var hasOwnVerification = false
    /// Seconds since 1970; nil for now. For tests.
    package var verificationTime: Int64?

    package init(_ role: Role) { self.role = role }
}

/// Whom a client wants to reach, as the certificate has to name it (RFC 9525).
package enum TLSPeerName: Hashable, Sendable {
    /// A host name without a trailing dot.
    case name(String)
    /// An IP address, 4 or 16 bytes.
    case address([UInt8])

    /// A name as it may stand in SNI and in a certificate, or why it may not.
    package static func checked(_ text: String) throws(TLSError) -> TLSPeerName {
        guard let host = try? HostPattern(parsing: text), host.wildcard == .none, !host.isAddress
        else {
            throw TLSError(
                .configuration,
                "\(quoted(text)) is no host name that a certificate can be checked for")
        }
        return .name(host.text)
    }
}
