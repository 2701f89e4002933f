import CTowpathOpenSSL
package import TowpathTLS

/// Issues certificates for tests: valid from 2020 to 2049 unless said otherwise, so that no test needs
/// a clock.
package struct CertificateAuthority: Sendable {
    package static let notBefore: Int64 = 1_577_836_800
    package static let notAfter: Int64 = 2_524_607_999

    package typealias Extension = (name: String, value: String)

    package let certificate: Certificate
    package let key: PrivateKey
    /// From this authority to the one below the root: what a server sends after its own certificate.
    package let intermediates: [Certificate]

    /// A root.
    package init(
        _ name: String = "Towpath test root", key kind: PrivateKey.Kind = .ec("P-256"),
        pathLength: Int? = nil, notBefore: Int64 = notBefore, notAfter: Int64 = notAfter,
        extensions: [Extension] = []
    ) throws {
        key = try PrivateKey(kind)
        var template = CertificateTemplate(
            commonName: name, notBefore: notBefore, notAfter: notAfter)
        template.extensions = Self.extensions(pathLength) + extensions
        certificate = try template.issued(for: key)
        intermediates = []
    }

    private init(_ certificate: Certificate, _ key: PrivateKey, _ intermediates: [Certificate]) {
        self.certificate = certificate
        self.key = key
        self.intermediates = intermediates
    }

    /// An authority below this one.
    package func intermediate(
        _ name: String = "Towpath test intermediate", key kind: PrivateKey.Kind = .ec("P-256"),
        pathLength: Int? = nil, notBefore: Int64 = notBefore, notAfter: Int64 = notAfter,
        extensions: [Extension] = []
    ) throws -> CertificateAuthority {
        let key = try PrivateKey(kind)
        var template = CertificateTemplate(
            commonName: name, notBefore: notBefore, notAfter: notAfter)
        template.extensions =
            Self.extensions(pathLength) + [("authorityKeyIdentifier", "keyid:always")] + extensions
        let issued = try template.issued(for: key, by: (certificate, self.key))
        return CertificateAuthority(issued, key, [issued] + intermediates)
    }

    /// A new key with a certificate for it, and the intermediates.
    package func identity(
        names: [String] = ["localhost"], key kind: PrivateKey.Kind = .ec("P-256"),
        notBefore: Int64 = notBefore, notAfter: Int64 = notAfter,
        usages: [String] = ["serverAuth"], isAuthority: Bool = false, extensions: [Extension] = []
    ) throws -> Identity {
        let key = try PrivateKey(kind)
        let leaf = try certificate(
            for: key, names: names, notBefore: notBefore, notAfter: notAfter, usages: usages,
            isAuthority: isAuthority, extensions: extensions)
        return try Identity(certificates: [leaf] + intermediates, key: key)
    }

    /// A certificate for a key.
    ///
    /// - Parameters:
    ///   - names: with none, it has no alternative names; `extensions` may have others.
    ///   - usages: of openssl.cnf, such as `clientAuth`; with none, no extended key usage.
    package func certificate(
        for key: PrivateKey, names: [String] = ["localhost"], commonName: String = "leaf",
        notBefore: Int64 = notBefore, notAfter: Int64 = notAfter,
        usages: [String] = ["serverAuth"], isAuthority: Bool = false, extensions: [Extension] = []
    ) throws -> Certificate {
        var template = CertificateTemplate(
            commonName: commonName, notBefore: notBefore, notAfter: notAfter)
        template.extensions = [
            ("basicConstraints", "critical,CA:\(isAuthority ? "TRUE" : "FALSE")"),
            ("subjectKeyIdentifier", "hash"), ("authorityKeyIdentifier", "keyid:always"),
        ]
        if !usages.isEmpty {
            template.extensions.append(("extendedKeyUsage", usages.joined(separator: ",")))
        }
        if !names.isEmpty { try template.add(names: names) }
        template.extensions += extensions
        return try template.issued(for: key, by: (certificate, self.key))
    }

    /// A list in PEM of certificates that are no longer good.
    package func revocationList(
        of revoked: [Certificate] = [], notBefore: Int64 = notBefore, notAfter: Int64 = notAfter
    ) throws -> String {
        let list = X509_CRL_new()
        let times = (ASN1_TIME_set(nil, Int(notBefore)), ASN1_TIME_set(nil, Int(notAfter)))
        defer {
            X509_CRL_free(list)
            ASN1_STRING_free(times.0)
            ASN1_STRING_free(times.1)
        }
        let isMade = withExtendedLifetime((self, revoked)) {
            let issuer = X509_get_subject_name(certificate.pointer)
            return X509_CRL_set_version(list, 1) == 1
                && X509_CRL_set_issuer_name(list, issuer) == 1
                && X509_CRL_set1_lastUpdate(list, times.0) == 1
                && X509_CRL_set1_nextUpdate(list, times.1) == 1
                && revoked.allSatisfy { certificate in
                    let entry = X509_REVOKED_new()
                    return X509_REVOKED_set_serialNumber(
                        entry, X509_get_serialNumber(certificate.pointer)) == 1
                        && X509_REVOKED_set_revocationDate(entry, times.0) == 1
                        && X509_CRL_add0_revoked(list, entry) == 1
                } && X509_CRL_sort(list) == 1
                && X509_CRL_sign(list, key.pointer, key.needsDigest ? EVP_sha256() : nil) > 0
        }
        guard isMade else { throw CertificateError("the list of revocations cannot be made") }
        return OpenSSLMemory.text { PEM_write_bio_X509_CRL($0, list) }
    }

    private static func extensions(_ pathLength: Int?) -> [Extension] {
        let limit = pathLength.map { ",pathlen:\($0)" } ?? ""
        return [
            ("basicConstraints", "critical,CA:TRUE\(limit)"),
            ("keyUsage", "critical,keyCertSign,cRLSign"), ("subjectKeyIdentifier", "hash"),
        ]
    }
}

extension Identity {
    /// All certificates in PEM, as the file of a server has them.
    package var chainPEM: String { certificates.map(\.pem).joined() }

    /// The private key in PEM, not encrypted.
    package var keyPEM: String { key.pem }
}
