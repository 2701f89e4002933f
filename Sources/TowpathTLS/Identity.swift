internal import CTowpathOpenSSL

/// Who one is: a certificate, those between it and an authority, and the private key.
///
/// Two are equal if their certificates are: the key is the one that belongs to the first. Reading never
/// asks a terminal for a password.
public struct Identity: Hashable, Sendable, CustomStringConvertible {
    /// The certificates, one's own first. There is at least one.
    public let certificates: [Certificate]

    package let key: PrivateKey

    /// One's own certificate.
    public let leaf: Certificate

    /// The pin of the key.
    public var pin: Pin { leaf.pin }

    /// What its certificate says; nothing of the key.
    public var description: String { leaf.description }

    /// For OpenSSL, as long as this value lives: the private key.
    package var keyPointer: OpaquePointer { key.pointer }

    /// For OpenSSL, as long as this value lives: one's own certificate.
    package var leafPointer: OpaquePointer { leaf.pointer }

    /// For OpenSSL, as long as this value lives: the certificates after one's own.
    package var intermediates: ArraySlice<Certificate> { certificates.dropFirst() }

    /// Whether both have the same certificates.
    public static func == (left: Self, right: Self) -> Bool {
        left.certificates == right.certificates
    }

    /// Hashes the certificates.
    public func hash(into hasher: inout Hasher) { hasher.combine(certificates) }

    /// Joins a chain and the key of its first certificate.
    package init(certificates: [Certificate], key: PrivateKey) throws(CertificateError) {
        try self.init(certificates, key, "the certificate", "the key")
    }

    private init(
        _ certificates: [Certificate], _ key: PrivateKey, _ chainSource: String,
        _ keySource: String
    ) throws(CertificateError) {
        guard let leaf = certificates.first else {
            throw CertificateError("\(chainSource): there is no certificate in it")
        }
        guard key.belongs(to: leaf) else {
            let place = certificates.firstIndex { key.belongs(to: $0) }
            let hint = place.map { ", but to number \($0 + 1); one's own comes first" } ?? ""
            throw CertificateError(
                "\(keySource) does not belong to the first certificate of \(chainSource)\(hint)")
        }
        self.certificates = certificates
        self.leaf = leaf
        self.key = key
    }
}

extension Identity {
    /// Reads a file of certificates, one's own first, in PEM, or of a single one in DER; and one with
    /// the private key, in PEM or DER: PKCS #8, PKCS #1 or SEC 1. Both may be the same PEM file. Blocks
    /// while it reads.
    ///
    /// - Parameters:
    ///   - keyFile: nil if the first file has the key as well.
    ///   - password: what the key is encrypted with.
    ///
    /// The error names the file, and says whether it is missing, empty or malformed, whether the password
    /// is missing or wrong, or that the key belongs to another certificate.
    public init(
        certificateFile: String, keyFile: String? = nil, password: String? = nil
    ) throws(CertificateError) {
        let chain = try OpenSSLMemory(file: certificateFile)
        try self.init(
            chain, certificateFile,
            keyFile.map { path throws(CertificateError) in
                (try OpenSSLMemory(file: path), path)
            }, password)
    }

    /// Reads certificates, one's own first, and the private key from PEM texts, or from one.
    public init(
        pem: String, keyPEM: String? = nil, password: String? = nil
    ) throws(CertificateError) {
        try self.init(
            pem: Array(pem.utf8), keyPEM: keyPEM.map { Array($0.utf8) }, password: password)
    }

    /// Reads certificates, one's own first, and the private key from the bytes of PEM texts, or of one.
    ///
    /// Either may also be DER.
    public init(
        pem: [UInt8], keyPEM: [UInt8]? = nil, password: String? = nil
    ) throws(CertificateError) {
        let (source, keySource) = ("the text of the certificate", "the text of the key")
        try self.init(
            OpenSSLMemory(pem, from: source), source,
            keyPEM.map { bytes throws(CertificateError) in
                (try OpenSSLMemory(bytes, from: keySource), keySource)
            }, password)
    }

    /// Reads certificates in DER, one's own first, and the private key in DER: PKCS #8, PKCS #1 or SEC 1.
    public init(
        der: [[UInt8]], keyDER: [UInt8], password: String? = nil
    ) throws(CertificateError) {
        var certificates: [Certificate] = []
        for bytes in der { certificates.append(try Certificate(der: bytes)) }
        let key = try PrivateKey.read(
            OpenSSLMemory(keyDER, from: "the DER key"), password: password, from: "the DER key")
        try self.init(certificates, key, "the DER certificates", "the DER key")
    }

    /// Reads a PKCS #12 file (`.p12`, `.pfx`). Blocks while it reads.
    ///
    /// The error names the file, and says whether it is missing, empty or malformed, whether the password
    /// is missing or wrong, or that there is no key or no certificate in it.
    public init(pkcs12File: String, password: String? = nil) throws(CertificateError) {
        try self.init(OpenSSLMemory(file: pkcs12File), pkcs12: pkcs12File, password)
    }

    /// Reads the bytes of a PKCS #12 file.
    public init(pkcs12: [UInt8], password: String? = nil) throws(CertificateError) {
        let source = "the PKCS #12 data"
        try self.init(OpenSSLMemory(pkcs12, from: source), pkcs12: source, password)
    }

    private init(
        _ chain: OpenSSLMemory, _ chainSource: String, _ key: (OpenSSLMemory, String)?,
        _ password: String?
    ) throws(CertificateError) {
        let certificates = try Certificate.read(chain, from: chainSource)
        let (keyMemory, keySource) = key ?? (chain, chainSource)
        let privateKey = try PrivateKey.read(keyMemory, password: password, from: keySource)
        try self.init(
            certificates, privateKey, chainSource,
            key == nil ? "the key" : "\(keySource): the key")
    }

    private init(
        _ memory: OpenSSLMemory, pkcs12 source: String, _ password: String?
    ) throws(CertificateError) {
        guard !memory.isEmpty else { throw CertificateError("\(source) is empty") }
        guard let stack = ossl_certificates_new() else { throw .noMemory }
        defer { ossl_certificates_free(stack) }
        var keyPointer: OpaquePointer?
        var leafPointer: OpaquePointer?
        let problem = ossl_read_pkcs12(memory.bio, password, &keyPointer, &leafPointer, stack)
        let key = keyPointer.map { PrivateKey(adopting: $0) }
        let leaf = leafPointer.map { Certificate(adopting: $0) }
        guard let key, let leaf else {
            let what = "private key with a certificate"
            throw PrivateKey.problemOfReading(problem, source, what: what)
        }
        let chain = leaf.chain(among: Certificate.all(in: stack))
        try self.init(chain, key, source, "the key")
    }
}

extension PrivateKey {
    fileprivate func belongs(to certificate: Certificate) -> Bool {
        withExtendedLifetime((self, certificate)) {
            defer { ERR_clear_error() }
            return X509_check_private_key(certificate.pointer, pointer) == 1
        }
    }
}

extension Certificate {
    /// From this certificate to the last issuer among others, whose order means nothing.
    fileprivate func chain(among others: [Certificate]) -> [Certificate] {
        var chain = [self]
        var rest = others
        while let last = chain.last,
            let next = rest.firstIndex(where: { $0.issued(last) && $0 != last })
        {
            chain.append(rest.remove(at: next))
        }
        return chain
    }

    private func issued(_ other: Certificate) -> Bool {
        withExtendedLifetime((self, other)) {
            X509_check_issued(pointer, other.pointer) == X509_V_OK
        }
    }
}
