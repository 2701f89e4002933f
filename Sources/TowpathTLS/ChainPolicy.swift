internal import CTowpathOpenSSL

/// How a chain of certificates is judged, beside what RFC 5280 §6 asks for.
struct ChainPolicy {
    private let configuration: TLSConfiguration

    init(_ configuration: TLSConfiguration) { self.configuration = configuration }

    /// For X509_verify_cert(3).
    func apply(to parameters: OpaquePointer) {
        var flags = UInt(X509_V_FLAG_TRUSTED_FIRST)
        if configuration.isStrict { flags |= UInt(X509_V_FLAG_X509_STRICT) }
        if configuration.allowsPartialChains { flags |= UInt(X509_V_FLAG_PARTIAL_CHAIN) }
        if !configuration.revocationLists.isEmpty {
            flags |= UInt(X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL)
        }
        X509_VERIFY_PARAM_set_flags(parameters, flags)
        X509_VERIFY_PARAM_set_hostflags(
            parameters,
            UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
        if let time = configuration.verificationTime {
            X509_VERIFY_PARAM_set_time(parameters, time_t(time))
        }
    }

    /// The name that the leaf has to bear: an address never as a name.
    static func require(
        _ name: TLSPeerName, in parameters: OpaquePointer
    ) throws(TLSError) {
        let isSet =
            switch name {
            case .name(let host):
                X509_VERIFY_PARAM_set1_host(parameters, host, host.utf8.count) == 1
            case .address(let bytes):
                X509_VERIFY_PARAM_set1_ip(parameters, bytes, bytes.count) == 1
            }
        guard isSet else { throw .configuration("the peer's name cannot be checked") }
    }

    /// The verdict on the chain that came with a handshake, or that a test made.
    func verify(_ store: OpaquePointer) -> TLSError? {
        switch configuration.verification {
        case .none where configuration.role == .client: return nil
        case .pinnedKeyOnly:
            guard let leaf = X509_STORE_CTX_get0_cert(store) else { return .noCertificate }
            return Self.datesError(of: Certificate(referencing: leaf), at: now)
        case .full, .none: break
        }
        ERR_clear_error()
        let isValid = X509_verify_cert(store) == 1
        let reasons = TLSError.takeErrors().reasons
        guard isValid else {
            return .certificate(X509_STORE_CTX_get_error(store), reasons, of: store)
        }
        guard let chain = X509_STORE_CTX_get0_chain(store) else { return nil }
        return ChainRules(Certificate.all(in: chain), anchors: anchors).violation
    }

    private var anchors: [Certificate] {
        if case .anchors(let certificates) = configuration.trust { return certificates }
        return []
    }

    var now: Int64 { configuration.verificationTime ?? Int64(ossl_now()) }

    private static func datesError(of leaf: Certificate, at now: Int64) -> TLSError? {
        if now < leaf.notBefore {
            return .certificate(
                X509_V_ERR_CERT_NOT_YET_VALID, "certificate is not yet valid", leaf)
        }
        if now > leaf.notAfter {
            return .certificate(X509_V_ERR_CERT_HAS_EXPIRED, "certificate has expired", leaf)
        }
        return nil
    }
}

extension TLSError {
    static let noCertificate = TLSError(
        .certificate(code: X509_V_ERR_UNSPECIFIED), "the peer has no certificate")

    fileprivate static func certificate(
        _ code: Int32, _ reasons: String, of store: OpaquePointer
    ) -> TLSError {
        let leaf = X509_STORE_CTX_get_current_cert(store) ?? X509_STORE_CTX_get0_cert(store)
        return certificate(code, reasons, leaf.map { Certificate(referencing: $0) })
    }

    fileprivate static func certificate(
        _ code: Int32, _ reasons: String, _ certificate: Certificate?
    ) -> TLSError {
        let reason = X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? ""
        var text = "the peer's certificate is not valid: \(reason)"
        if let certificate {
            text += " (\(certificate.subject), by \(certificate.issuer))"
            if code == X509_V_ERR_HOSTNAME_MISMATCH || code == X509_V_ERR_IP_ADDRESS_MISMATCH {
                let names = certificate.dnsNames + certificate.ipAddresses.map(HostPattern.text)
                text += "; it is for \(names.isEmpty ? "nobody" : names.joined(separator: ", "))"
            }
        }
        return TLSError(.certificate(code: code), text, reasons: reasons)
    }
}
