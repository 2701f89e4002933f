internal import CTowpathOpenSSL

/// Who the peer is, and what was agreed on with it.
extension TLSEngine {
    // MARK: Verification

    /// Called in the middle of the handshake; above 0 to go on.
    func verify(_ store: OpaquePointer) -> Int32 {
        if let error = ChainPolicy(context.configuration).verify(store) ?? pinError(store) {
            return refuse(error, store)
        }
        if context.configuration.verification != .none { verifiedChain = Self.chain(of: store) }
        guard context.configuration.hasOwnVerification, context.configuration.role == .client
        else { return 1 }
        switch verdict {
        case .accepted: return 1
        case .rejected(let reason): return refuse(TLSError(.rejected, reason), store)
        case .notAsked:
            ossl_retry_verify(ssl)
            return 1
        }
    }

    private func refuse(_ error: TLSError, _ store: OpaquePointer) -> Int32 {
        notedError = error
        // It decides on the alert: RFC 8446 §6.2 has none for pins, and this one is bad_certificate.
        var code = X509_V_ERR_CERT_UNTRUSTED
        if case .certificate(let own) = error.kind { code = own }
        X509_STORE_CTX_set_error(store, code)
        return 0
    }

    private static func chain(of store: OpaquePointer) -> [Certificate] {
        if let chain = X509_STORE_CTX_get0_chain(store) {
            let list = Certificate.all(in: chain)
            if !list.isEmpty { return list }
        }
        return X509_STORE_CTX_get0_cert(store).map { [Certificate(referencing: $0)] } ?? []
    }

    /// On the validated chain: a pinned certificate that the peer only added cannot match.
    private func pinError(_ store: OpaquePointer) -> TLSError? {
        let configuration = context.configuration
        guard let pins = configuration.pins, configuration.role == .client else { return nil }
        let host: String
        switch peerName {
        case .name(let name)?: host = name
        case .address(let bytes)?: host = HostPattern.text(ofAddress: bytes)
        case nil: host = ""
        }
        let chain = Self.chain(of: store)
        let now = ChainPolicy(configuration).now
        switch pins.verdict(chainPins: chain.map(\.pin), host: host, now: now) {
        case .matched: return nil
        case .noPinsForHost, .expired:
            guard configuration.verification == .full else {
                return TLSError(.pinMismatch, "there is no pin that counts for \(host)")
            }
            return nil
        case .mismatch(let offered):
            let list = zip(chain, offered).map { "\($1) (\($0.subject))" }
            let error = TLSError(
                .pinMismatch,
                "no key of the chain of \(host) is pinned; it has \(list.joined(separator: ", "))")
            guard pins.reportOnly, configuration.verification == .full else { return error }
            reportedMismatch = error
            return nil
        }
    }

    /// False ends the handshake.
    func checkStaple() -> Bool {
        let mustHave =
            context.configuration.staple == .required
            || verifiedChain.first.map { ossl_must_staple($0.pointer) == 1 } ?? false
        switch ossl_check_staple(ssl) {
        case OSSL_STAPLE_GOOD: return true
        case OSSL_STAPLE_MISSING:
            guard mustHave else { return true }
            notedError = TLSError(
                .certificate(code: X509_V_ERR_OCSP_VERIFY_NEEDED),
                "the server sent no word of its authority on revocation (OCSP)")
        case OSSL_STAPLE_REVOKED:
            notedError = TLSError(
                .certificate(code: X509_V_ERR_CERT_REVOKED),
                "the peer's certificate was revoked, as its authority says (OCSP)")
        default:
            guard mustHave else { return true }
            notedError = TLSError(
                .certificate(code: X509_V_ERR_OCSP_VERIFY_FAILED),
                "the server's word on revocation (OCSP) is not valid")
        }
        _ = TLSError.takeErrors()
        return false
    }

    // MARK: A server's choices

    /// The identity for the name that the client asks for, if there is another than the first.
    func chooseIdentity() -> Bool {
        guard let name = serverName, let host = try? HostPattern(parsing: name),
            let identity = context.configuration.identities.first(where: { $0.isFor(host) })
        else { return true }
        guard let chain = ossl_certificates_new() else { return false }
        defer { ossl_certificates_free(chain) }
        for certificate in identity.certificates.dropFirst() {
            guard ossl_certificates_add(chain, certificate.pointer) == 1 else { return false }
        }
        return ossl_use_identity(ssl, identity.leafPointer, identity.keyPointer, chain) == 1
    }

    /// Where a name stands in the client's list.
    func sameProtocol(
        _ name: UnsafeBufferPointer<UInt8>, in list: UnsafeBufferPointer<UInt8>
    ) -> UnsafePointer<UInt8>? {
        var at = 0
        while at < list.count {
            let count = Int(list[at])
            guard at + 1 + count <= list.count else { return nil }
            if list[(at + 1)..<(at + 1 + count)].elementsEqual(name) {
                return list.baseAddress.map { $0 + at + 1 }
            }
            at += 1 + count
        }
        return nil
    }

    // MARK: What was agreed on

    package var version: TLSVersion? { TLSVersion(rawValue: SSL_version(ssl)) }

    package var cipherSuite: String {
        SSL_get_current_cipher(ssl).flatMap { SSL_CIPHER_get_name($0) }.map {
            String(cString: $0)
        } ?? ""
    }

    package var group: String? { ossl_group_name(ssl).map { String(cString: $0) } }

    package var isResumed: Bool { SSL_session_reused(ssl) == 1 }

    /// What a client asked for.
    package var serverName: String? {
        SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
    }

    package var applicationProtocol: String? {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &name, &count)
        return name.map {
            String(decoding: UnsafeBufferPointer(start: $0, count: Int(count)), as: UTF8.self)
        }
    }

    /// A client accepts no protocol that it did not offer (RFC 7301 §3.1).
    var protocolError: TLSError? {
        guard context.configuration.role == .client, let chosen = applicationProtocol,
            !context.configuration.applicationProtocols.contains(chosen)
        else { return nil }
        return TLSError(
            .handshake,
            "the server chose the application protocol \"\(chosen)\", which nobody offered")
    }

    /// What the peer sent, its own certificate first; a resumed session has none but that.
    package var peerCertificates: [Certificate] {
        if let chain = SSL_get_peer_cert_chain(ssl), context.configuration.role == .client {
            return Certificate.all(in: chain)
        }
        let rest = SSL_get_peer_cert_chain(ssl).map { Certificate.all(in: $0) } ?? []
        guard let leaf = SSL_get0_peer_certificate(ssl) else { return rest }
        return [Certificate(referencing: leaf)] + rest
    }

    /// Bytes that only the two of this connection know (RFC 8446 §7.5, RFC 5705).
    package func exportKeyingMaterial(
        label: String, context: [UInt8]?, count: Int
    ) throws(TLSError) -> [UInt8] {
        ERR_clear_error()
        var material = [UInt8](repeating: 0, count: max(1, count))
        let bytes = context ?? []
        let result = SSL_export_keying_material(
            ssl, &material, count, label, label.utf8.count, bytes, bytes.count,
            context == nil ? 0 : 1)
        guard count > 0, isEstablished, result == 1 else {
            throw .configuration("no keying material can be exported")
        }
        return Array(material.prefix(count))
    }
}

extension Identity {
    /// Whether its certificate is for a host (RFC 9525 §6.3).
    fileprivate func isFor(_ host: HostPattern) -> Bool {
        leaf.dnsNames.contains { name in
            guard let pattern = try? HostPattern(parsing: name), pattern.wildcard != .anyDepth
            else { return false }
            return pattern.matches(host)
        }
    }
}
