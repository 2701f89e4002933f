internal import CTowpathOpenSSL

/// A private key, for OpenSSL alone: it does not say what it is in words, and OpenSSL wipes it.
package struct PrivateKey: Sendable {
    /// What keys can be generated.
    package enum Kind: Sendable {
        /// With OpenSSL's or NIST's name of the curve, such as `P-256`.
        case ec(String)
        case rsa(bits: Int)
        case rsaPSS(bits: Int)
        case ed25519
    }

    private let reference: OpenSSLReference

    /// Takes over a reference of OpenSSL.
    init(adopting pointer: OpaquePointer) {
        reference = OpenSSLReference(pointer) { EVP_PKEY_free($0) }
    }

    /// A new key.
    package init(_ kind: Kind) throws(CertificateError) {
        ERR_clear_error()
        let pointer =
            switch kind {
            case .ec(let curve): ossl_new_ec_key(curve)
            case .rsa(let bits): ossl_new_rsa_key("RSA", Int32(bits))
            case .rsaPSS(let bits): ossl_new_rsa_key("RSA-PSS", Int32(bits))
            case .ed25519: ossl_new_key("ED25519")
            }
        guard let pointer else { throw .withReasons("a key cannot be generated") }
        self.init(adopting: pointer)
    }

    /// For OpenSSL, as long as this value lives.
    package var pointer: OpaquePointer { reference.pointer }

    /// The key in PEM, PKCS #8, not encrypted.
    package var pem: String {
        withExtendedLifetime(self) { OpenSSLMemory.text { ossl_write_key($0, pointer) } }
    }

    /// Whether signing needs a digest beside it; Ed25519 has its own.
    package var needsDigest: Bool {
        withExtendedLifetime(self) { EVP_PKEY_is_a(pointer, "ED25519") != 1 }
    }

    /// Reads the first private key in PEM or in DER: PKCS #8, PKCS #1 or SEC 1, encrypted or not.
    static func read(
        _ memory: OpenSSLMemory, password: String?, from source: String
    ) throws(CertificateError) -> PrivateKey {
        guard !memory.isEmpty else { throw CertificateError("\(source) is empty") }
        var problem: Int32 = 0
        if let pointer = ossl_read_key(memory.bio, password, &problem) {
            ERR_clear_error()
            return PrivateKey(adopting: pointer)
        }
        throw problemOfReading(problem, source, what: "private key")
    }

    /// The error for what a reader says.
    static func problemOfReading(
        _ problem: Int32, _ source: String, what: String
    ) -> CertificateError {
        let reasons = CertificateError.takenReasons()
        let ending = reasons.isEmpty ? "" : " (\(reasons))"
        switch ossl_key_problem(rawValue: UInt32(problem)) {
        case OSSL_KEY_MISSING:
            return CertificateError("\(source): there is no \(what) in it")
        case OSSL_KEY_LOCKED:
            return CertificateError(
                "\(source): the \(what) is encrypted, and no password was given")
        case OSSL_KEY_WRONG_PASSWORD where reasons.contains("unsupported"):
            return CertificateError(
                """
                \(source): OpenSSL 3 does not decrypt the \(what), whose algorithm is an old one; \
                encrypt it anew\(ending)
                """)
        case OSSL_KEY_WRONG_PASSWORD:
            return CertificateError("\(source): the password of the \(what) is wrong\(ending)")
        case OSSL_KEY_OPENSSH:
            return CertificateError(
                """
                \(source): the \(what) has OpenSSH's own format; `ssh-keygen -p -m PKCS8 -f FILE` \
                converts it
                """)
        default:
            return CertificateError("\(source): the \(what) is malformed\(ending)")
        }
    }
}
