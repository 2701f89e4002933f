internal import CTowpathOpenSSL

/// An SSL_CTX: made once from a configuration, shared by its connections, never changed.
package final class TLSContext: @unchecked Sendable {
    // SSL_CTX counts its references atomically, and nothing is set after init.
    let pointer: OpaquePointer
    package let configuration: TLSConfiguration
    let applicationProtocols: [UInt8]
    /// Kept: SSL_CTX does not own the store's holder.
    private let store: TrustStore?

    package init(_ configuration: TLSConfiguration) throws(TLSError) {
        // First what can fail: deinit does not run for what was not made whole.
        applicationProtocols = try Self.wireForm(configuration.applicationProtocols)
        store = try Self.trust(configuration)
        ERR_clear_error()
        let isClient = configuration.role == .client
        guard let method = isClient ? TLS_client_method() : TLS_server_method(),
            let pointer = SSL_CTX_new(method)
        else { throw .configuration("no context") }
        self.pointer = pointer
        self.configuration = configuration
        if let store { SSL_CTX_set1_cert_store(pointer, store.pointer) }
        try apply()
    }

    deinit { SSL_CTX_free(pointer) }

    private static func trust(_ configuration: TLSConfiguration) throws(TLSError) -> TrustStore? {
        let needsTrust =
            configuration.role == .client
            ? configuration.verification == .full : configuration.clientAuthentication != .none
        guard needsTrust else { return nil }
        if configuration.role == .server, configuration.trust == .system {
            throw TLSError(
                .configuration,
                "a server that asks for certificates of clients needs trust anchors of its own:"
                    + " any host of the Internet has one of a public authority")
        }
        return try TrustStore(configuration.trust, revocationLists: configuration.revocationLists)
    }

    private func apply() throws(TLSError) {
        _ = ossl_set_mode(pointer, OSSL_MODE)
        _ = ossl_set_options(
            pointer,
            OSSL_OP_NO_RENEGOTIATION | OSSL_OP_NO_COMPRESSION | OSSL_OP_CIPHER_SERVER_PREFERENCE
                | OSSL_OP_PRIORITIZE_CHACHA)
        try applyVersions()
        try applyCipherSuites()
        try applyIdentity()
        applyVerification()
        applyProtocols()
        applySessions()
        try applyKeys()
        try configuration.pins?.checked()
    }

    private func applyVersions() throws(TLSError) {
        let (least, most) = (configuration.minimumVersion, configuration.maximumVersion)
        guard least <= most,
            ossl_set_minimum_version(pointer, least.rawValue) == 1,
            ossl_set_maximum_version(pointer, most.rawValue) == 1
        else { throw .configuration("no version from \(least) to \(most)") }
    }

    /// Forward secrecy and authenticated encryption only.
    private static let olderSuites = "ECDHE+AESGCM:ECDHE+CHACHA20"
    /// The one of those (RFC 7905) for pre-shared keys.
    private static let sharedKeySuites = ":kECDHEPSK+CHACHA20"
    private static let groups = "X25519:P-256:P-384"

    private func applyCipherSuites() throws(TLSError) {
        let newer = configuration.cipherSuites.filter { $0.hasPrefix("TLS_") }
        let older = configuration.cipherSuites.filter { !$0.hasPrefix("TLS_") }
        let standard =
            Self.olderSuites + (configuration.preSharedKeys.isEmpty ? "" : Self.sharedKeySuites)
        let olderList = older.isEmpty ? standard : older.joined(separator: ":")
        // What was listed for one version only leaves the other's as they are.
        let isNewerRight =
            newer.isEmpty
            || SSL_CTX_set_ciphersuites(pointer, newer.joined(separator: ":")) == 1
        guard isNewerRight, SSL_CTX_set_cipher_list(pointer, olderList) == 1,
            older.allSatisfy({ $0.utf8.allSatisfy { $0 != UInt8(ascii: "@") } })
        else {
            let names = configuration.cipherSuites.joined(separator: ", ")
            throw .configuration("unknown cipher suite in \(names)")
        }
        let list =
            configuration.groups.isEmpty
            ? Self.groups : configuration.groups.joined(separator: ":")
        guard ossl_set_groups(pointer, list) == 1 else {
            throw .configuration("unknown group in \(list)")
        }
    }

    private func applyIdentity() throws(TLSError) {
        guard let identity = configuration.identities.first else {
            if configuration.role == .client || !configuration.preSharedKeys.isEmpty { return }
            throw TLSError(.configuration, "a TLS server needs an identity: TLS(identity:)")
        }
        guard SSL_CTX_use_certificate(pointer, identity.leafPointer) == 1,
            SSL_CTX_use_PrivateKey(pointer, identity.keyPointer) == 1,
            SSL_CTX_check_private_key(pointer) == 1,
            identity.intermediates.allSatisfy({
                ossl_add_chain(pointer, $0.pointer) == 1
            })
        else {
            let name = identity.certificates.first?.subject ?? ""
            throw .configuration("the identity \(name) cannot be used")
        }
        if configuration.role == .server, configuration.identities.count > 1 {
            SSL_CTX_set_cert_cb(pointer, TLSCallbacks.chooseIdentity, nil)
        }
    }

    private func applyVerification() {
        SSL_CTX_set_cert_verify_callback(pointer, TLSCallbacks.verify, nil)
        switch configuration.role {
        case .client:
            SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
            if configuration.staple != .ignored {
                _ = ossl_set_status_callback(pointer, TLSCallbacks.checkStaple)
            }
        case .server:
            let required = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
            let mode =
                switch configuration.clientAuthentication {
                case .none: SSL_VERIFY_NONE
                case .optional: SSL_VERIFY_PEER
                case .required: required
                }
            SSL_CTX_set_verify(pointer, mode, nil)
            if case .anchors(let anchors) = configuration.trust {
                for anchor in anchors { SSL_CTX_add_client_CA(pointer, anchor.pointer) }
            }
            if !configuration.stapledResponse.isEmpty {
                _ = ossl_set_status_callback(pointer, TLSCallbacks.staple)
            }
        }
        if let parameters = SSL_CTX_get0_param(pointer) {
            ChainPolicy(configuration).apply(to: parameters)
        }
    }

    private func applyProtocols() {
        guard !applicationProtocols.isEmpty else { return }
        switch configuration.role {
        // Zero is success, for this function alone.
        case .client:
            SSL_CTX_set_alpn_protos(
                pointer, applicationProtocols, UInt32(applicationProtocols.count))
        case .server: SSL_CTX_set_alpn_select_cb(pointer, TLSCallbacks.chooseProtocol, nil)
        }
    }

    private func applySessions() {
        switch configuration.role {
        case .client where configuration.resumesSessions:
            _ = ossl_set_session_cache_mode(pointer, OSSL_CACHE_CLIENT)
            SSL_CTX_sess_set_new_cb(pointer, TLSCallbacks.keepSession)
        case .client: _ = ossl_set_session_cache_mode(pointer, OSSL_CACHE_OFF)
        case .server:
            // Tickets need no memory here. The name must be set, or clients with certificates cannot
            // resume.
            _ = ossl_set_session_cache_mode(pointer, OSSL_CACHE_OFF)
            SSL_CTX_set_session_id_context(pointer, Array("towpath".utf8), 7)
            let count = configuration.resumesSessions ? configuration.ticketCount : 0
            SSL_CTX_set_num_tickets(pointer, count)
            if count == 0 { _ = ossl_set_options(pointer, OSSL_OP_NO_TICKET) }
        }
    }

    private func applyKeys() throws(TLSError) {
        for key in configuration.preSharedKeys {
            guard (1...256).contains(key.key.count), (1...128).contains(key.identity.utf8.count)
            else {
                throw TLSError(
                    .configuration,
                    "a pre-shared key has 1 to 256 bytes, and a name of 1 to 128 bytes")
            }
        }
        if !configuration.preSharedKeys.isEmpty {
            switch configuration.role {
            case .client: SSL_CTX_set_psk_client_callback(pointer, TLSCallbacks.offerKey)
            case .server: SSL_CTX_set_psk_server_callback(pointer, TLSCallbacks.findKey)
            }
        }
        guard let path = configuration.keyLogFile else { return }
        guard ossl_key_log_open(path) >= 0 else {
            throw TLSError(.configuration, "\(path): the key log cannot be opened for appending")
        }
        SSL_CTX_set_keylog_callback(pointer, TLSCallbacks.logKey)
    }

    /// RFC 7301 §3.1: each name behind its length.
    private static func wireForm(_ names: [String]) throws(TLSError) -> [UInt8] {
        var bytes: [UInt8] = []
        for name in names {
            guard (1...255).contains(name.utf8.count) else {
                throw TLSError(
                    .configuration, "an application protocol has a name of 1 to 255 bytes")
            }
            bytes.append(UInt8(name.utf8.count))
            bytes += name.utf8
        }
        guard bytes.count <= 65_535 else {
            throw TLSError(.configuration, "too many application protocols")
        }
        return bytes
    }
}

extension PinSet {
    fileprivate func checked() throws(TLSError) {
        do throws(CertificateError) { try validate() } catch {
            throw TLSError(.configuration, error.description)
        }
    }
}
