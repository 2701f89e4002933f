internal import CTowpathOpenSSL

/// An X.509 certificate.
///
/// That a certificate can be read says nothing about whether it can be trusted. Two are equal if they
/// have the same DER.
public struct Certificate: Hashable, Sendable, CustomStringConvertible {
    private let reference: OpenSSLReference

    /// Shares a certificate with OpenSSL, which counts one reference more.
    package init(referencing pointer: OpaquePointer) {
        X509_up_ref(pointer)
        self.init(adopting: pointer)
    }

    /// Takes over a reference of OpenSSL.
    init(adopting pointer: OpaquePointer) {
        reference = OpenSSLReference(pointer) { X509_free($0) }
    }

    /// For OpenSSL, as long as this value lives.
    package var pointer: OpaquePointer { reference.pointer }

    /// The certificate in DER.
    public var der: [UInt8] {
        withExtendedLifetime(self) {
            OpenSSLMemory.bytes { ossl_write_der($0, pointer) } ?? []
        }
    }

    /// The certificate in PEM, ending in a line break.
    public var pem: String { text { ossl_write_pem($0, $1) } }

    /// The pin of its public key.
    public var pin: Pin { Pin(of: self) }

    /// Its subject and its key: `CN=localhost (EC P-256)`.
    public var description: String { "\(subject) (\(keyDescription))" }

    /// Whether both have the same DER.
    public static func == (left: Self, right: Self) -> Bool {
        withExtendedLifetime((left, right)) { X509_cmp(left.pointer, right.pointer) == 0 }
    }

    /// Hashes a digest that OpenSSL has at hand: contexts and sessions are looked up for each connection.
    public func hash(into hasher: inout Hasher) {
        var digest = [UInt8](repeating: 0, count: Int(SHA_DIGEST_LENGTH))
        withExtendedLifetime(self) { _ = X509_digest(pointer, EVP_sha1(), &digest, nil) }
        hasher.combine(digest)
    }
}

extension Certificate {
    /// The subject as RFC 2253 writes it, `CN=localhost,O=Towpath`: the last part first, bytes beyond
    /// ASCII as `\C3\BC`, so that it is safe to log.
    public var subject: String { text { ossl_write_subject($0, $1) } }

    /// The issuer, written like `subject`.
    public var issuer: String { text { ossl_write_issuer($0, $1) } }

    /// The serial number in capital hexadecimal digits, two a byte.
    public var serialNumber: String { text { ossl_write_serial($0, $1) } }

    /// When it begins to be valid, in seconds since 1970; `Int64.max` if its time is malformed.
    public var notBefore: Int64 { withExtendedLifetime(self) { ossl_not_before(pointer) } }

    /// The last second in which it is valid, in seconds since 1970; `Int64.min` if its time is
    /// malformed.
    public var notAfter: Int64 { withExtendedLifetime(self) { ossl_not_after(pointer) } }

    /// The DNS names among the subject's alternative names, in their order, as they are written.
    ///
    /// Empty if the extension is malformed. Names with a space, a control character or a byte beyond
    /// ASCII, which no name has, are left out, here and in `emailAddresses` and `uris`.
    public var dnsNames: [String] { printableNames(ofType: GEN_DNS) }

    /// The mailboxes among the subject's alternative names.
    public var emailAddresses: [String] { printableNames(ofType: GEN_EMAIL) }

    /// The URIs among the subject's alternative names.
    public var uris: [String] { printableNames(ofType: GEN_URI) }

    /// The addresses among the subject's alternative names: four bytes for IPv4, sixteen for IPv6, in
    /// network order. Those of another length are left out.
    public var ipAddresses: [[UInt8]] {
        names(ofType: GEN_IPADD).filter { $0.count == 4 || $0.count == 16 }
    }

    /// Whether its own key signed it.
    public var isSelfSigned: Bool {
        withExtendedLifetime(self) {
            defer { ERR_clear_error() }
            return X509_self_signed(pointer, 1) == 1
        }
    }

    /// Whether it may issue certificates: it says so in its basic constraints, and no key usage
    /// forbids it.
    public var isAuthority: Bool {
        withExtendedLifetime(self) {
            defer { ERR_clear_error() }
            return X509_check_ca(pointer) == 1
        }
    }

    /// The kind of its public key: `RSA 2048`, `RSA-PSS 2048`, `EC P-256`, `ED25519`; of a kind that
    /// OpenSSL does not know, the name or number of the algorithm.
    public var keyDescription: String {
        withExtendedLifetime(self) {
            defer { ERR_clear_error() }
            guard let key = X509_get0_pubkey(pointer), let type = ossl_key_type(key) else {
                return text { ossl_write_key_algorithm($0, $1) }
            }
            let name = String(cString: type)
            switch name {
            case "EC": return "EC " + OpenSSLMemory.text { ossl_write_curve($0, key) }
            case "RSA", "RSA-PSS", "DSA", "DH": return "\(name) \(ossl_key_bits(key))"
            default: return name
            }
        }
    }

    private func text(_ write: (OpaquePointer, OpaquePointer) -> Int32) -> String {
        withExtendedLifetime(self) { OpenSSLMemory.text { write($0, pointer) } }
    }

    private func printableNames(ofType type: Int32) -> [String] {
        names(ofType: type).filter { $0.allSatisfy { (0x21...0x7E).contains($0) } }
            .map { String(decoding: $0, as: UTF8.self) }
    }

    /// What is in the alternative names of a type; not the empty ones.
    func names(ofType type: Int32) -> [[UInt8]] {
        withExtendedLifetime(self) {
            ERR_clear_error()
            guard let names = ossl_names(pointer) else {
                ERR_clear_error()
                return []
            }
            defer { ossl_names_free(names) }
            return (0..<max(0, ossl_name_count(names))).filter { ossl_name_type(names, $0) == type }
                .compactMap { index in OpenSSLMemory.bytes { ossl_write_name($0, names, index) } }
        }
    }
}
