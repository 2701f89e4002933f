internal import CTowpathOpenSSL

/// A public key by its hash: the SHA-256 of the DER SubjectPublicKeyInfo, which is what RFC 7469, curl,
/// OkHttp and the `openssl` command line hash.
///
/// It names the key with its algorithm and its curve, and stays the same when a certificate is renewed
/// with the same key. Some guides hash the bare key instead, without the header: such a hash never
/// matches.
public struct Pin: Hashable, Sendable, CustomStringConvertible {
    /// The 32 bytes of the hash; none if the pin is malformed.
    public let digest: [UInt8]

    /// What is wrong with a malformed pin, which matches nothing.
    package let problem: String?

    private let text: String

    private init(digest: [UInt8]) {
        self.digest = digest
        problem = nil
        text = "sha256/" + Base64.encode(digest)
    }

    private init(malformed text: String, _ problem: String) {
        digest = []
        self.problem = problem
        self.text = text
    }

    /// The pin of a certificate's public key, whatever its kind.
    public init(of certificate: Certificate) {
        var digest = [UInt8](repeating: 0, count: 32)
        ERR_clear_error()
        let isMade = withExtendedLifetime(certificate) { ossl_pin(certificate.pointer, &digest) }
        if isMade == 1 {
            self.init(digest: digest)
        } else {
            self.init(malformed: "", "a key without DER: \(CertificateError.takenReasons())")
        }
    }

    /// Parses `sha256/BASE64` as OkHttp writes it, `sha256//BASE64` as curl does, or
    /// `pin-sha256="BASE64"` of RFC 7469.
    ///
    /// The error says what is wrong: another form, another hash, not canonical base64 of 32 bytes.
    public init(parsing text: String) throws(CertificateError) {
        let start = "pin-sha256=\""
        if text.hasPrefix(start), text.hasSuffix("\""), text.utf8.count > start.utf8.count {
            self = .sha256(String(text.dropFirst(start.count).dropLast()))
        } else if text.hasPrefix("sha256/") {
            // One pin in 64 begins with the second slash of curl's form.
            let pin = Self.sha256(String(text.dropFirst(7)))
            let hasTwo = pin.problem != nil && text.hasPrefix("sha256//")
            self = hasTwo ? .sha256(String(text.dropFirst(8))) : pin
        } else {
            throw CertificateError("the pin \(quoted(text)): \(Self.problemOfForm(text))")
        }
        if let problem { throw CertificateError("the pin \(quoted(text)): \(problem)") }
    }

    /// Parses curl's list: pins with `;` between them.
    public static func parsing(list: String) throws(CertificateError) -> [Pin] {
        var pins: [Pin] = []
        for part in list.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        {
            let bare = part.drop { $0 == 0x20 }
            let count = bare.reversed().drop { $0 == 0x20 }.count
            guard count > 0 else {
                throw CertificateError("the list of pins \(quoted(list)): a pin in it is empty")
            }
            pins.append(try Pin(parsing: String(Substring(bare.prefix(count)))))
        }
        return pins
    }

    /// The pin with this base64, without a prefix.
    ///
    /// It does not throw, so that pins can be written down as constants: a malformed one is refused
    /// when the configuration that it is part of is built.
    public static func sha256(_ base64: String) -> Pin {
        switch decodedDigest(base64) {
        case .success(let digest): Pin(digest: digest)
        case .failure(let error): Pin(malformed: base64, error.description)
        }
    }

    /// `sha256/BASE64`; a malformed pin as it was written.
    public var description: String { text }

    private static func problemOfForm(_ text: String) -> String {
        let lowercased = text.lowercased()
        let isHex = text.utf8.count == 64 && text.utf8.allSatisfy { base16.contains($0 | 0x20) }
        return if text.isEmpty {
            "it is empty"
        } else if lowercased.hasPrefix("sha1") || lowercased.hasPrefix("pin-sha1") {
            "SHA-1 is too weak for a pin; give the SHA-256 of the key as sha256/BASE64"
        } else if isHex {
            "it is hexadecimal, which does not say what was hashed; give it as sha256/BASE64"
        } else if decodedDigest(text).isSuccess {
            "put sha256/ in front of it"
        } else {
            "a pin has the form sha256/BASE64, sha256//BASE64 or pin-sha256=\"BASE64\""
        }
    }

    private static let base16 = Set("0123456789abcdef".utf8)

    private static func decodedDigest(_ text: String) -> Result<[UInt8], CertificateError> {
        if text.utf8.isEmpty { return .failure(.init("there is no base64 in it")) }
        let symbols = text.utf8.prefix { $0 != UInt8(ascii: "=") }
        let padding = text.utf8.dropFirst(symbols.count)
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        var bitCount = 0
        for symbol in symbols {
            guard let value = base64Symbols.firstIndex(of: symbol) else {
                let isURL = symbol == UInt8(ascii: "-") || symbol == UInt8(ascii: "_")
                return .failure(
                    .init(
                        isURL
                            ? "it is base64url; write + for - and / for _"
                            : "it is not base64"))
            }
            bits = bits << 6 | UInt32(value)
            bitCount += 6
            guard bitCount >= 8 else { continue }
            bitCount -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
            bits &= 1 << UInt32(bitCount) - 1
        }
        guard bytes.count == 32 else {
            return .failure(.init("it has \(bytes.count) bytes, a SHA-256 has 32"))
        }
        guard padding.elementsEqual("=".utf8), symbols.count == 43 else {
            return .failure(.init("its base64 does not end in one ="))
        }
        guard bits == 0 else {
            return .failure(.init("the last symbol of its base64 has bits that mean nothing"))
        }
        return .success(bytes)
    }
}

extension Result {
    fileprivate var isSuccess: Bool { if case .success = self { true } else { false } }
}

private let base64Symbols = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

/// 32 bytes, whose last group has two of them.
