internal import TowpathReactor
package import TowpathTLS

/// TLS 1.2 and 1.3 (RFC 5246, RFC 8446) over ``TCP``, by the system's OpenSSL.
///
///     Connection(to: "example.com:443") { TLS() }
///     Listener(on: .port(443)) { TLS(identity: identity) }
///
/// Without any option a client trusts the host's certificates, checks the peer's for the name or
/// address it connects to, and offers only suites with forward secrecy and authenticated encryption.
/// An option that cannot have its effect fails the opening with ``NetworkError/Code/optionFailed``. The
/// end of the stream is the peer's closing alert; one without it is ``NetworkError/Code/truncated``.
public struct TLS: StreamProtocol {
    /// Whether the other side has to prove who it is.
    public enum PeerAuthentication: Sendable {
        /// It must show a certificate that is valid.
        case required
        /// Of a listener: a client may show a certificate, which then must be valid.
        case optional
        /// Of a listener: clients are not asked. Of a client: **anybody can pose as the server**; for
        /// tests and for finding out what is there.
        case none
    }

    /// What is asked for of the server's OCSP staple (RFC 6066 §8).
    public enum StapledStatus: Sendable {
        /// Nothing; but one that a certificate promises must be there (RFC 7633).
        case ignored
        /// It is asked for, and one that says "revoked" counts.
        case requested
        /// There must be one, and it must say "good".
        case required
    }

    package var tcp: TCP
    package var configuration = TLSConfiguration(.client)
    package var name: String?
    package var handshakeTimeout: Duration = .seconds(10)
    package var handshakeLimit = 512
    var authentication: PeerAuthentication?
    var hooks: TLSHooks?

    /// TLS over TCP with its defaults, for a client.
    public init() { tcp = TCP() }

    /// TLS over TCP with the options given.
    public init(_ tcp: () -> TCP) { self.tcp = tcp() }

    /// TLS with an identity of one's own: a listener needs one, a client shows it to servers that ask.
    public init(identity: Identity, _ tcp: () -> TCP = { TCP() }) {
        self.init(identities: [identity], tcp)
    }

    /// TLS with several identities, of which a listener chooses by the name that the client asks for
    /// (SNI); the first one for those who ask for none, or for another.
    public init(identities: [Identity], _ tcp: () -> TCP = { TCP() }) {
        self.tcp = tcp()
        configuration.identities = identities
    }

    /// TLS and TCP.
    public var stack: ProtocolStack { ProtocolStack(transport: .tcp(tcp), tls: self) }

    // MARK: The peer

    /// The name to ask for and to check the certificate for, where it is not the endpoint's: needed for
    /// Unix sockets. A name or an address.
    public func serverName(_ name: String) -> TLS { with { $0.name = name } }

    /// Whether the other side has to prove who it is. Default: a client's server must, a listener's
    /// clients are not asked.
    public func peerAuthentication(_ authentication: PeerAuthentication) -> TLS {
        with { $0.authentication = authentication }
    }

    /// Trusts these certificates instead of the host's.
    ///
    /// - Parameters:
    ///   - anchors: Where trust begins: roots, or with `partialChains` any certificate of the chain.
    ///   - partialChains: Whether a chain may end at an anchor that is no root (X509_V_FLAG_PARTIAL_CHAIN).
    public func trust(anchors: [Certificate], partialChains: Bool = false) -> TLS {
        with {
            $0.configuration.trust = .anchors(anchors)
            $0.configuration.allowsPartialChains = partialChains
        }
    }

    /// Refuses certificates that bend the rules of RFC 5280 (X509_V_FLAG_X509_STRICT), as those of
    /// private authorities often do. Default: off.
    public func strict(_ enabled: Bool = true) -> TLS {
        with { $0.configuration.isStrict = enabled }
    }

    /// Lists of what the authorities revoked (RFC 5280 §5), each in DER or PEM. With any, every
    /// authority of a chain needs a current one.
    public func revocationLists(_ lists: [[UInt8]]) -> TLS {
        with { $0.configuration.revocationLists = lists }
    }

    /// What is asked for of the server's OCSP staple. Default: ``StapledStatus/ignored``.
    public func stapledStatus(_ status: StapledStatus) -> TLS {
        with {
            $0.configuration.staple =
                switch status {
                case .ignored: .ignored
                case .requested: .requested
                case .required: .required
                }
        }
    }

    /// The OCSP response that a listener sends with its certificate, in DER. Fetching and renewing it is
    /// the user's: see ``Listener/update(_:)``.
    public func stapledResponse(_ response: [UInt8]) -> TLS {
        with { $0.configuration.stapledResponse = response }
    }

    /// Asks `verifier` for its own verdict, after and in addition to the others; false, or an error,
    /// refuses the peer. It may wait: the handshake does so with it. On a listener it runs after the
    /// handshake, before any byte is read, and may see a client without a certificate. Sessions are not
    /// resumed then.
    public func verifier(
        _ verifier: @escaping @Sendable (TLSPeer) async throws -> Bool
    ) -> TLS {
        with {
            $0.hooks = TLSHooks(TLSVerifier(verifier), $0.hooks?.onPinMismatch)
            $0.configuration.hasOwnVerification = true
        }
    }

    // MARK: Pins

    /// Accepts only servers with one of these keys in their validated chain, in addition to everything
    /// else. Backups are keys that are not in use yet, for the day when the others must be given up: at
    /// least one, or a lost key locks all clients out.
    public func pins(_ pins: Pin..., backup: Pin...) -> TLS {
        self.pins(PinSet(pins: pins, backups: backup))
    }

    /// Pins with all their conditions.
    public func pins(_ pins: PinSet) -> TLS { with { $0.configuration.pins = pins } }

    /// Trusts nothing but these keys, whoever signed the certificate and whatever name it bears: for
    /// servers in development that signed it themselves. Its dates still count.
    public func pinnedKeyOnly(_ pins: Pin...) -> TLS {
        with {
            var set = PinSet(pins: pins)
            set.allowsNoBackup = true
            $0.configuration.pins = set
            $0.configuration.verification = .pinnedKeyOnly
        }
    }

    /// Calls `observer` where pins that are only to be reported do not match; the error lists the keys
    /// that the server has. On whichever thread it happens: it must not block.
    public func onPinMismatch(_ observer: @escaping @Sendable (NetworkError) -> Void) -> TLS {
        with { $0.hooks = TLSHooks($0.hooks?.verifier, observer) }
    }

    // MARK: What is offered

    /// The versions that are spoken. Default: TLS 1.2 and 1.3.
    public func version(minimum: TLSVersion = .tls12, maximum: TLSVersion = .tls13) -> TLS {
        with {
            $0.configuration.minimumVersion = minimum
            $0.configuration.maximumVersion = maximum
        }
    }

    /// The cipher suites, by OpenSSL's names (`openssl ciphers -s -v`). Those of TLS 1.3 begin with
    /// `TLS_`; of a version for which none is listed, the defaults remain.
    public func cipherSuites(_ names: String...) -> TLS {
        with { $0.configuration.cipherSuites = names }
    }

    /// The groups for the key exchange, by OpenSSL's names. Default: X25519, P-256, P-384.
    public func groups(_ names: String...) -> TLS { with { $0.configuration.groups = names } }

    /// The application protocols, the preferred first (ALPN, RFC 7301). A listener that has none of
    /// those that a client offers ends the handshake; a client that offers none is served.
    public func applicationProtocols(_ names: String...) -> TLS {
        with { $0.configuration.applicationProtocols = names }
    }

    /// Proves both sides by a key that they share (RFC 8446 §4.2.11, with SHA-256; in TLS 1.2 RFC 7905,
    /// `ECDHE-PSK-CHACHA20-POLY1305`). Certificates are not needed then; a listener may know several keys,
    /// and a client offers its first.
    public func preSharedKey(identity: String, key: [UInt8]) -> TLS {
        with {
            $0.configuration.preSharedKeys.append(
                TLSConfiguration.PreSharedKey(identity: identity, key: key))
        }
    }

    /// Whether a client takes sessions up again, and a listener gives the tickets for it. Default: true.
    public func resumption(_ enabled: Bool) -> TLS {
        with { $0.configuration.resumesSessions = enabled }
    }

    // MARK: Limits and logs

    /// How long a handshake may take on a listener, and in ``Connection/upgrade(to:as:timeout:)``. A client's
    /// connection timeout counts there. Default: 10 s.
    public func handshakeTimeout(_ limit: Duration) -> TLS {
        with { $0.handshakeTimeout = limit }
    }

    /// How many handshakes a listener has under way at a time; others wait, unread. Default: 512.
    public func handshakeLimit(_ count: Int) -> TLS { with { $0.handshakeLimit = max(1, count) } }

    /// Appends the secrets of every connection to a file, in the form that Wireshark reads
    /// (NSS key log). **Whoever reads the file can read the connections.** Never by an environment
    /// variable.
    public func keyLog(file path: String) -> TLS { with { $0.configuration.keyLogFile = path } }

    /// Judges certificates as of another time, in seconds since 1970: for tests.
    package func verificationTime(_ time: Int64) -> TLS {
        with { $0.configuration.verificationTime = time }
    }

    private func with(_ change: (inout TLS) -> Void) -> TLS {
        var copy = self
        change(&copy)
        return copy
    }
}

/// What the user does in a handshake. Apart from the options, which are too large for frames that wait.
final class TLSHooks: Sendable {
    let verifier: TLSVerifier?
    let onPinMismatch: (@Sendable (NetworkError) -> Void)?

    init(_ verifier: TLSVerifier?, _ onPinMismatch: (@Sendable (NetworkError) -> Void)?) {
        self.verifier = verifier
        self.onPinMismatch = onPinMismatch
    }
}

/// The user's own verification.
final class TLSVerifier: Sendable {
    private let verify: @Sendable (TLSPeer) async throws -> Bool

    init(_ verify: @escaping @Sendable (TLSPeer) async throws -> Bool) { self.verify = verify }

    /// Why the peer is refused; nil if it is not.
    func refusal(of peer: TLSPeer) async -> String? {
        do {
            return try await verify(peer) ? nil : "the verifier refused the peer"
        } catch {
            return "the verifier refused the peer: \(error)"
        }
    }
}
