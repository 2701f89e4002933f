internal import CTowpathOpenSSL

/// Where trust begins: an X509_STORE, parsed once and shared by contexts.
struct TrustStore: Sendable {
    private final class Holder: @unchecked Sendable {
        // X509_STORE has a lock of its own, and is not changed once it is made.
        let pointer: OpaquePointer

        init(_ pointer: OpaquePointer) { self.pointer = pointer }

        deinit { X509_STORE_free(pointer) }
    }

    private let holder: Holder

    /// Lives as long as this value.
    var pointer: OpaquePointer { holder.pointer }

    /// The host's certificates, where OpenSSL looks for them: SSL_CERT_FILE and SSL_CERT_DIR, or the
    /// distribution's places.
    static let system: Result<TrustStore, TLSError> = Result { () throws(TLSError) in
        try TrustStore(loadingSystem: ())
    }

    private init() throws(TLSError) {
        guard let pointer = X509_STORE_new() else { throw .configuration("no memory") }
        holder = Holder(pointer)
    }

    private init(loadingSystem: Void) throws(TLSError) {
        try self.init()
        ERR_clear_error()
        let isLoaded = X509_STORE_set_default_paths(pointer) == 1
        ERR_clear_error()
        guard isLoaded, holdsSomething || Self.directoryHoldsSomething else {
            throw TLSError(
                .configuration,
                "the host has no trust store: install its certificates (Debian: ca-certificates),"
                    + " set SSL_CERT_FILE, or give trust anchors")
        }
    }

    /// Some anchors, and lists of what they revoked.
    init(_ trust: TLSConfiguration.Trust, revocationLists: [[UInt8]]) throws(TLSError) {
        switch trust {
        case .system where revocationLists.isEmpty: self = try Self.system.get()
        case .system: try self.init(loadingSystem: ())
        case .anchors(let certificates):
            try self.init()
            for certificate in certificates {
                guard X509_STORE_add_cert(pointer, certificate.pointer) == 1 else {
                    throw .configuration("a trust anchor cannot be used: \(certificate.subject)")
                }
            }
        }
        for list in revocationLists { try add(list) }
    }

    private func add(_ list: [UInt8]) throws(TLSError) {
        ERR_clear_error()
        guard let parsed = ossl_read_revocations(list, list.count) else {
            throw .configuration("a revocation list is malformed")
        }
        defer { X509_CRL_free(parsed) }
        guard X509_STORE_add_crl(pointer, parsed) == 1 else {
            throw .configuration("a revocation list cannot be used")
        }
    }

    private var holdsSomething: Bool { ossl_store_count(pointer) > 0 }

    /// Certificates in a directory are looked up when they are needed.
    private static var directoryHoldsSomething: Bool { ossl_has_certificate_directory() == 1 }
}
