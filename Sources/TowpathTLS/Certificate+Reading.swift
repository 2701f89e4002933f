internal import CTowpathOpenSSL

extension Certificate {
    /// Reads one certificate in DER, and nothing after it.
    public init(der: [UInt8]) throws(CertificateError) {
        let source = "the DER certificate"
        self = try Self.read(OpenSSLMemory(der, from: source), isPEM: false, from: source)[0]
    }

    /// Reads the certificates of a PEM text, in their order, and skips what else is in it.
    ///
    /// Throws if one is malformed, or if there is none.
    public static func parsing(pem: String) throws(CertificateError) -> [Certificate] {
        try parsing(pem: Array(pem.utf8))
    }

    /// Reads the certificates of a PEM text, in their order, and skips what else is in it.
    ///
    /// Throws if one is malformed, or if there is none.
    public static func parsing(pem: [UInt8]) throws(CertificateError) -> [Certificate] {
        let source = "the PEM text"
        return try read(OpenSSLMemory(pem, from: source), isPEM: true, from: source)
    }

    /// Reads a file of one or more certificates in PEM, or of one in DER. Blocks while it reads.
    ///
    /// The error names the file, and says whether it is missing, has no certificate or a malformed one.
    public static func reading(file path: String) throws(CertificateError) -> [Certificate] {
        try read(OpenSSLMemory(file: path), from: path)
    }

    /// The certificates in PEM or DER, at least one.
    static func read(
        _ memory: OpenSSLMemory, isPEM: Bool? = nil, from source: String
    ) throws(CertificateError) -> [Certificate] {
        guard !memory.isEmpty else { throw CertificateError("\(source) is empty") }
        guard isPEM ?? memory.isPEM else {
            var hasTrailingBytes: Int32 = 0
            guard let pointer = ossl_read_der_certificate(memory.bio, &hasTrailingBytes) else {
                throw hasTrailingBytes == 1
                    ? CertificateError("\(source): there are bytes after the certificate")
                    : .withReasons(
                        "\(source): there is no certificate in it, neither PEM nor well-formed DER")
            }
            return [Certificate(adopting: pointer)]
        }
        guard let stack = ossl_certificates_new() else { throw .noMemory }
        defer { ossl_certificates_free(stack) }
        let isWhole = ossl_read_pem_certificates(memory.bio, stack) == 1
        let certificates = Certificate.all(in: stack)
        guard isWhole else {
            throw .withReasons("\(source): certificate \(certificates.count + 1) is malformed")
        }
        guard !certificates.isEmpty else {
            throw CertificateError("\(source): there is no certificate in it")
        }
        return certificates
    }

    /// The certificates of OpenSSL's stack, which stays the caller's; none for nil.
    package static func all(in stack: OpaquePointer?) -> [Certificate] {
        (0..<max(0, ossl_certificate_count(stack))).compactMap { index in
            ossl_certificate_at(stack, index).map { Certificate(referencing: $0) }
        }
    }
}
