internal import CTowpathOpenSSL

/// The verdict of a handshake on a chain of certificates, without the handshake.
package enum ChainVerifier {
    /// Nil where a peer with such a configuration would go on.
    ///
    /// - Parameters:
    ///   - intermediates: What the other side sent along.
    ///   - name: Whom a client wants to reach; nil where no name is asked for.
    package static func verify(
        _ leaf: Certificate, intermediates: [Certificate], for name: TLSPeerName?,
        _ configuration: TLSConfiguration
    ) -> TLSError? {
        do throws(TLSError) {
            let store = try TrustStore(
                configuration.trust, revocationLists: configuration.revocationLists)
            return try verify(leaf, intermediates, name, configuration, store)
        } catch {
            return error
        }
    }

    private static func verify(
        _ leaf: Certificate, _ intermediates: [Certificate], _ name: TLSPeerName?,
        _ configuration: TLSConfiguration, _ trust: TrustStore
    ) throws(TLSError) -> TLSError? {
        ERR_clear_error()
        guard let context = X509_STORE_CTX_new(), let others = ossl_certificates_new() else {
            throw .configuration("no memory")
        }
        defer {
            X509_STORE_CTX_free(context)
            ossl_certificates_free(others)
        }
        // As ssl_verify_cert_chain() of OpenSSL makes it, before it calls back.
        let purpose = configuration.role == .client ? "ssl_server" : "ssl_client"
        guard intermediates.allSatisfy({ ossl_certificates_add(others, $0.pointer) == 1 }),
            X509_STORE_CTX_init(context, trust.pointer, leaf.pointer, others) == 1,
            X509_STORE_CTX_set_default(context, purpose) == 1,
            let parameters = X509_STORE_CTX_get0_param(context)
        else { throw .configuration("the chain cannot be verified") }
        X509_VERIFY_PARAM_set_auth_level(parameters, try securityLevel())
        let policy = ChainPolicy(configuration)
        policy.apply(to: parameters)
        if let name { try ChainPolicy.require(name, in: parameters) }
        return policy.verify(context)
    }

    /// That of all contexts, which leave it as the host set it.
    private static func securityLevel() throws(TLSError) -> Int32 {
        guard let context = SSL_CTX_new(TLS_method()) else { throw .configuration("no context") }
        defer { SSL_CTX_free(context) }
        return SSL_CTX_get_security_level(context)
    }
}
