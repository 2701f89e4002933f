internal import CTowpathOpenSSL

/// A certificate (X.509, RFC 5280). Two are equal when their bytes are.
public struct Certificate: Hashable, Sendable, CustomStringConvertible {
    private final class Holder: @unchecked Sendable {
        // Counted atomically by OpenSSL, and not changed once it is here.
        let pointer: OpaquePointer
        let der: [UInt8]

        init(owning pointer: OpaquePointer) {
            self.pointer = pointer
            der = Certificate.bytes { i2d_X509(pointer, $0) }
        }

        deinit { X509_free(pointer) }
    }

    private let holder: Holder

    package var pointer: OpaquePointer { holder.pointer }

    /// Shares one of OpenSSL's.
    package init(referencing pointer: OpaquePointer) {
        X509_up_ref(pointer)
        holder = Holder(owning: pointer)
    }

    /// A certificate from its DER encoding.
    public init(der: [UInt8]) throws(CertificateError) {
        ERR_clear_error()
        let pointer = der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            var next = bytes.baseAddress
            guard let pointer = d2i_X509(nil, &next, bytes.count) else { return nil }
            guard next == bytes.baseAddress.map({ $0 + bytes.count }) else {
                X509_free(pointer)
                return nil
            }
            return pointer
        }
        guard let pointer else { throw .taking("this is no certificate in DER") }
        holder = Holder(owning: pointer)
    }

    /// The certificates of a text in PEM, in their order; at least one.
    public static func parsing(pem: [UInt8]) throws(CertificateError) -> [Certificate] {
        ERR_clear_error()
        guard let list = ossl_read_certificates(pem, pem.count) else {
            throw .taking("a certificate is malformed")
        }
        defer { ossl_certificates_free(list) }
        let certificates = Certificate.list(list)
        guard !certificates.isEmpty else {
            throw CertificateError("there is no certificate in it (BEGIN CERTIFICATE)")
        }
        return certificates
    }

    /// The certificates of a file, PEM with one or more, or DER with one.
    public static func reading(file path: String) throws(CertificateError) -> [Certificate] {
        let bytes = try FileBytes.contents(of: path)
        do throws(CertificateError) {
            return try parsing(pemOrDER: bytes)
        } catch {
            throw CertificateError("\(path): \(error)")
        }
    }

    static func parsing(pemOrDER bytes: [UInt8]) throws(CertificateError) -> [Certificate] {
        // A sequence, as every certificate in DER is.
        if bytes.first == 0x30 { return [try Certificate(der: bytes)] }
        return try parsing(pem: bytes)
    }

    /// Whether the bytes are the same.
    public static func == (left: Certificate, right: Certificate) -> Bool {
        left.holder === right.holder || left.der == right.der
    }

    /// By the bytes.
    public func hash(into hasher: inout Hasher) { hasher.combine(der) }

    // MARK: What it says

    /// Its DER encoding.
    public var der: [UInt8] { holder.der }

    /// Whom it is for (RFC 4514), such as `CN=example.com,O=Example`.
    public var subject: String { Self.text(of: X509_get_subject_name(pointer)) }

    /// Who signed it.
    public var issuer: String { Self.text(of: X509_get_issuer_name(pointer)) }

    /// Its number with its issuer, hexadecimal.
    public var serialNumber: String {
        guard let number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(pointer), nil) else {
            return ""
        }
        defer { BN_free(number) }
        guard let text = BN_bn2hex(number) else { return "" }
        defer { CRYPTO_free(text, "", 0) }
        return String(cString: text)
    }

    /// From when on it is valid, in seconds since 1970.
    public var notBefore: Int64 { ossl_seconds(X509_get0_notBefore(pointer), .max) }

    /// Until when it is valid, in seconds since 1970.
    public var notAfter: Int64 { ossl_seconds(X509_get0_notAfter(pointer), .min) }

    /// The host names it is for; not its common name.
    public var dnsNames: [String] { names(GEN_DNS).map { String(decoding: $0, as: UTF8.self) } }

    /// The addresses it is for, 4 or 16 bytes each.
    public var ipAddresses: [[UInt8]] { names(GEN_IPADD) }

    /// The mail addresses it is for.
    public var emailAddresses: [String] {
        names(GEN_EMAIL).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The URIs it is for, such as `spiffe://…`.
    public var uris: [String] { names(GEN_URI).map { String(decoding: $0, as: UTF8.self) } }

    /// Whether it may sign others.
    public var isAuthority: Bool { X509_check_ca(pointer) > 0 }

    /// Whether it says that it signed itself.
    public var isSelfIssued: Bool {
        X509_NAME_cmp(X509_get_subject_name(pointer), X509_get_issuer_name(pointer)) == 0
    }

    /// The kind and size of its key, such as `RSA 2048` or `EC 256`.
    public var keyDescription: String {
        guard let key = X509_get0_pubkey(pointer),
            let name = EVP_PKEY_get0_type_name(key).map({ String(cString: $0) })
        else { return "unknown" }
        return "\(name) \(EVP_PKEY_get_bits(key))"
    }

    /// The pin of its key.
    public var pin: Pin { Pin(of: self) }

    /// Its PEM encoding.
    public var pem: String {
        let base64 = Base64.encode(der)
        let lines = stride(from: 0, to: base64.count, by: 64).map { start in
            String(decoding: base64[start..<min(start + 64, base64.count)], as: UTF8.self)
        }
        return "-----BEGIN CERTIFICATE-----\n" + lines.joined(separator: "\n")
            + "\n-----END CERTIFICATE-----\n"
    }

    /// Subject and issuer.
    public var description: String { "\(subject), by \(issuer)" }

    private func names(_ kind: Int32) -> [[UInt8]] {
        guard let names = ossl_alternative_names(pointer) else { return [] }
        defer { ossl_names_free(names) }
        return (0..<ossl_name_count(names)).compactMap { index in
            var bytes: UnsafePointer<UInt8>?
            var count: Int32 = 0
            guard ossl_name_at(names, index, &bytes, &count) == kind, count >= 0 else { return nil }
            return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
        }
    }

    private static func text(of name: OpaquePointer?) -> String {
        guard let name, let bio = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(bio) }
        _ = ossl_print_name(bio, name)
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = BIO_read(bio, &buffer, Int32(buffer.count))
        return String(decoding: buffer.prefix(max(0, Int(count))), as: UTF8.self)
    }

    /// The SubjectPublicKeyInfo, in DER.
    var publicKeyInfo: [UInt8] {
        guard let key = X509_get_X509_PUBKEY(pointer) else { return [] }
        return Self.bytes { i2d_X509_PUBKEY(key, $0) }
    }

    /// What an encoder of OpenSSL writes, which tells the size first.
    static func bytes(
        _ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
    ) -> [UInt8] {
        let size = encode(nil)
        guard size > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: Int(size)) { buffer, count in
            var next = buffer.baseAddress
            count = max(0, Int(encode(&next)))
        }
    }
}

extension CertificateError {
    /// With what OpenSSL says.
    static func taking(_ what: String) -> CertificateError {
        let reasons = TLSError.takeErrors().reasons
        return CertificateError(reasons.isEmpty ? what : "\(what): \(reasons)")
    }
}

/// Whole files, small ones.
enum FileBytes {
    /// Certificates and keys are far smaller.
    private static let limit = 16 * 1_048_576

    static func contents(of path: String) throws(CertificateError) -> [UInt8] {
        ERR_clear_error()
        guard let bio = BIO_new_file(path, "r") else { throw .taking("\(path): cannot be read") }
        defer { BIO_free(bio) }
        var contents: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while contents.count < limit {
            let count = BIO_read(bio, &buffer, Int32(buffer.count))
            guard count > 0 else { break }
            contents += buffer.prefix(Int(count))
        }
        guard !contents.isEmpty else { throw .taking("\(path): empty, or cannot be read") }
        return contents
    }
}
