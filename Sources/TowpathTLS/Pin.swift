internal import CTowpathOpenSSL

/// The SHA-256 of a public key with its kind (SubjectPublicKeyInfo in DER, RFC 7469 §2.4): the same for
/// each certificate of that key, and what `openssl`, curl and OkHttp compute.
public struct Pin: Hashable, Sendable, CustomStringConvertible {
    /// 32 bytes; empty for a pin that was given malformed.
    public let digest: [UInt8]
    /// What is wrong with it.
    package let problem: String?

    private init(digest: [UInt8], problem: String? = nil) {
        self.digest = digest
        self.problem = problem
    }

    /// The pin of a certificate's key.
    public init(of certificate: Certificate) {
        let info = certificate.publicKeyInfo
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        SHA256(info, info.count, &digest)
        self.init(digest: info.isEmpty ? [] : digest)
    }

    /// A pin as others write it: `sha256/BASE64`, `sha256//BASE64` or `pin-sha256="BASE64"`.
    public init(parsing text: String) throws(CertificateError) {
        // Base 64 may begin with a slash itself, so that both of these can fit.
        let forms = [("pin-sha256=\"", "\""), ("sha256//", ""), ("sha256/", "")]
        let pins = forms.compactMap { text.stripped($0, $1).map(Pin.sha256) }
        if let pin = pins.first(where: { $0.problem == nil }) {
            self = pin
            return
        }
        throw CertificateError(
            pins.last?.problem
                ?? "\(text): a pin has the form sha256/BASE64, of the SHA-256 of a public key")
    }

    /// Pins joined by `;`, as curl takes them.
    public static func parsing(list text: String) throws(CertificateError) -> [Pin] {
        var pins: [Pin] = []
        for word in text.split(separator: ";") { pins.append(try Pin(parsing: String(word))) }
        return pins
    }

    /// A pin by its Base 64. A malformed one makes the configuration fail that has it.
    public static func sha256(_ base64: String) -> Pin {
        guard let digest = Base64.decode(base64.utf8) else {
            return Pin(digest: [], problem: "the pin \(base64) is no Base 64")
        }
        guard digest.count == 32 else {
            return Pin(
                digest: [],
                problem: "the pin \(base64) has \(digest.count) bytes; a SHA-256 has 32")
        }
        return Pin(digest: digest)
    }

    /// `sha256/BASE64`.
    public var description: String {
        "sha256/" + String(decoding: Base64.encode(digest), as: UTF8.self)
    }
}

/// Keys that a server may have, and under which conditions that counts.
public struct PinSet: Hashable, Sendable {
    /// The keys in use.
    public var pins: [Pin]
    /// Keys for later, of which no certificate is out yet.
    public var backups: [Pin]
    /// Only the server's own key counts, not those of its authorities.
    public var leafOnly = false
    /// A mismatch is told to ``TLS``'s observer, and the connection goes on.
    public var reportOnly = false
    /// When the pins cease to count, in seconds since 1970, so that a forgotten client is not locked out
    /// for ever; nil for never.
    public var expires: Int64?
    /// The hosts for which they count: a name, `*.` for one label in front, `**.` for any number of
    /// them and none. Empty for all.
    public var hosts: [String] = []
    /// Whether there need be no backup.
    public var allowsNoBackup: Bool

    /// Pins for all hosts, and those to change to.
    public init(_ pins: [Pin], backups: [Pin] = [], allowsNoBackup: Bool = false) {
        self.pins = pins
        self.backups = backups
        self.allowsNoBackup = allowsNoBackup
    }

    enum Verdict: Equatable {
        case matched
        /// They are for other hosts.
        case noPinsForHost
        case expired
        case mismatch(offered: [Pin])
    }

    func validate() throws(CertificateError) {
        for pin in pins + backups {
            if let problem = pin.problem { throw CertificateError(problem) }
        }
        guard !pins.isEmpty else {
            throw CertificateError("an empty set of pins would let nobody in: leave pins out")
        }
        guard allowsNoBackup || backups.contains(where: { !pins.contains($0) }) else {
            throw CertificateError(
                "pins need a backup, another key kept elsewhere: if the pinned one is lost, no"
                    + " client can connect any more")
        }
        for host in hosts {
            let name = host.stripped("**.", "") ?? host.stripped("*.", "") ?? host
            do throws(TLSError) { _ = try TLSPeerName.checked(name) } catch {
                throw CertificateError("pins for \(host): \(error)")
            }
        }
    }

    /// Of the pins of a validated chain, the server's own first. One match is enough (RFC 7469 §2.6).
    func verdict(chainPins: [Pin], host: String, now: Int64) -> Verdict {
        guard hosts.isEmpty || hosts.contains(where: { Self.matches(host, $0) }) else {
            return .noPinsForHost
        }
        if let expires, now >= expires { return .expired }
        let offered = leafOnly ? Array(chainPins.prefix(1)) : chainPins
        let isMatched = offered.contains { pin in
            !pin.digest.isEmpty && (pins.contains(pin) || backups.contains(pin))
        }
        return isMatched ? .matched : .mismatch(offered: chainPins)
    }

    private static func matches(_ host: String, _ pattern: String) -> Bool {
        let (host, pattern) = (normalized(host), normalized(pattern))
        if let apex = pattern.stripped("**.", "") {
            return host == apex || host.hasSuffix("." + apex)
        }
        guard let domain = pattern.stripped("*.", "") else { return host == pattern }
        guard let dot = host.firstIndex(of: ".") else { return false }
        return host[host.index(after: dot)...] == domain
    }

    private static func normalized(_ host: String) -> String {
        let lower = host.lowercased()
        return lower.hasSuffix(".") ? String(lower.dropLast()) : lower
    }
}

extension String {
    /// What lies between a prefix and a suffix; nil where they are not there.
    fileprivate func stripped(_ prefix: String, _ suffix: String) -> String? {
        guard hasPrefix(prefix), hasSuffix(suffix),
            utf8.count >= prefix.utf8.count + suffix.utf8.count
        else { return nil }
        return String(dropFirst(prefix.count).dropLast(suffix.count))
    }
}
