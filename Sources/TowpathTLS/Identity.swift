internal import CTowpathOpenSSL

/// A certificate with the chain behind it and the private key to it: what a server shows, and a client
/// that servers ask for one.
public struct Identity: Hashable, Sendable {
    private final class Key: @unchecked Sendable {
        // Counted atomically by OpenSSL, and not changed once it is here.
        let pointer: OpaquePointer

        init(owning pointer: OpaquePointer) { self.pointer = pointer }

        deinit { EVP_PKEY_free(pointer) }
    }

    private let leaf: Certificate
    private let key: Key
    /// The certificates, one's own first.
    public let certificates: [Certificate]

    package var leafPointer: OpaquePointer { leaf.pointer }
    package var keyPointer: OpaquePointer { key.pointer }

    /// The pin of its key.
    public var pin: Pin { leaf.pin }

    /// From files: certificates in PEM, one's own first, or one in DER; the key in PEM or DER, of any
    /// usual form, encrypted if there is a password. Both may be the same file.
    public init(
        certificateFile: String, keyFile: String, password: String? = nil
    ) throws(CertificateError) {
        let certificates = try Certificate.reading(file: certificateFile)
        let bytes = try FileBytes.contents(of: keyFile)
        do throws(CertificateError) {
            try self.init(certificates, key: bytes, password: password)
        } catch {
            throw CertificateError("\(keyFile): \(error)")
        }
    }

    /// From bytes in PEM or DER, as those of files.
    public init(
        certificates: [UInt8], key: [UInt8], password: String? = nil
    ) throws(CertificateError) {
        try self.init(
            try Certificate.parsing(pemOrDER: certificates), key: key, password: password)
    }

    private init(
        _ certificates: [Certificate], key: [UInt8], password: String?
    ) throws(CertificateError) {
        try self.init(certificates, try Self.readKey(key, password))
    }

    private init(_ certificates: [Certificate], _ key: Key) throws(CertificateError) {
        guard let leaf = certificates.first else { throw CertificateError("no certificate") }
        ERR_clear_error()
        guard X509_check_private_key(leaf.pointer, key.pointer) == 1 else {
            _ = TLSError.takeErrors()
            throw CertificateError("the key does not belong to the certificate of \(leaf.subject)")
        }
        self.leaf = leaf
        self.key = key
        self.certificates = certificates
    }

    private static func readKey(
        _ bytes: [UInt8], _ password: String?
    ) throws(CertificateError) -> Key {
        ERR_clear_error()
        let (pointer, isAsked) = withPassword(password) { password in
            ossl_read_key(bytes, bytes.count, &password)
        }
        if let pointer {
            ERR_clear_error()
            return Key(owning: pointer)
        }
        let reasons = TLSError.takeErrors().reasons
        if isAsked {
            throw CertificateError(
                password == nil
                    ? "the key is encrypted: give its password"
                    : "the key cannot be decrypted: is the password right? (\(reasons))")
        }
        throw CertificateError("there is no private key in it: \(reasons)")
    }

    private static func withPassword<Value>(
        _ password: String?, _ body: (inout ossl_password) -> Value
    ) -> (Value, isAsked: Bool) {
        func call(_ text: UnsafePointer<CChar>?, _ count: Int) -> (Value, isAsked: Bool) {
            var lent = ossl_password(text: text, count: count, asked: 0)
            let value = body(&lent)
            return (value, lent.asked != 0)
        }
        guard let password else { return call(nil, 0) }
        return password.withCString { call($0, password.utf8.count) }
    }

    /// From a PKCS #12 file (RFC 7292).
    public init(pkcs12File path: String, password: String = "") throws(CertificateError) {
        let bytes = try FileBytes.contents(of: path)
        do throws(CertificateError) { try self.init(pkcs12: bytes, password: password) } catch {
            throw CertificateError("\(path): \(error)")
        }
    }

    /// From the bytes of PKCS #12 (RFC 7292).
    public init(pkcs12 bytes: [UInt8], password: String = "") throws(CertificateError) {
        ERR_clear_error()
        let archive = bytes.withUnsafeBufferPointer { bytes in
            var next = bytes.baseAddress
            return d2i_PKCS12(nil, &next, bytes.count)
        }
        guard let archive else { throw .taking("this is no PKCS #12") }
        defer { PKCS12_free(archive) }
        var (key, leaf, others): (OpaquePointer?, OpaquePointer?, OpaquePointer?)
        guard PKCS12_parse(archive, password, &key, &leaf, &others) == 1 else {
            throw .taking("the PKCS #12 cannot be read: is the password right?")
        }
        defer {
            X509_free(leaf)
            ossl_certificates_free(others)
        }
        guard let key else { throw CertificateError("there is no private key in it") }
        let holder = Key(owning: key)
        guard let leaf else { throw CertificateError("there is no certificate to the key in it") }
        try self.init(
            [Certificate(referencing: leaf)] + (others.map { Certificate.list($0) } ?? []), holder)
    }

    /// A new key (P-256) and a certificate that it signs itself, in memory: for development and tests.
    /// Clients can pin the key, or trust the certificate.
    ///
    /// - Parameters:
    ///   - names: Host names and addresses it is for.
    ///   - days: How long it is valid, from an hour ago on.
    public static func selfSigned(
        names: [String] = ["localhost", "127.0.0.1", "::1"], days: Int = 30
    ) throws(CertificateError) -> Identity {
        ERR_clear_error()
        guard let key = ossl_new_p256_key() else { throw .taking("no key can be made") }
        let holder = Key(owning: key)
        guard let certificate = X509_new() else { throw .taking("no certificate can be made") }
        defer { X509_free(certificate) }
        let text = names.map { (ossl_is_address($0) == 1 ? "IP:" : "DNS:") + $0 }
        guard !names.isEmpty, names.allSatisfy({ !$0.contains(",") }), days > 0, days < 36_500,
            let subject = X509_get_subject_name(certificate),
            X509_NAME_add_entry_by_txt(
                subject, "CN", MBSTRING_UTF8, String(names[0].prefix(64)), -1, -1, 0) == 1,
            X509_set_version(certificate, 2) == 1, ossl_set_serial(certificate) == 1,
            X509_set_issuer_name(certificate, subject) == 1,
            ossl_set_validity(certificate, -3_600, days * 86_400) == 1,
            X509_set_pubkey(certificate, key) == 1,
            [
                (NID_basic_constraints, "critical,CA:FALSE"),
                (NID_key_usage, "critical,digitalSignature"),
                (NID_ext_key_usage, "serverAuth,clientAuth"),
                (NID_subject_alt_name, text.joined(separator: ",")),
                (NID_subject_key_identifier, "hash"),
            ].allSatisfy({ ossl_add_extension(certificate, certificate, $0, $1) == 1 }),
            X509_sign(certificate, key, EVP_sha256()) > 0
        else { throw .taking("no certificate for \(names.joined(separator: ", ")) can be made") }
        return try Identity([Certificate(referencing: certificate)], holder)
    }

    /// Whether the certificates are the same.
    public static func == (left: Identity, right: Identity) -> Bool {
        left.certificates == right.certificates
    }

    /// By the certificates.
    public func hash(into hasher: inout Hasher) { hasher.combine(certificates) }
}
