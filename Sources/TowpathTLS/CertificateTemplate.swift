internal import CTowpathOpenSSL

/// What a new certificate shall say.
package struct CertificateTemplate: Sendable {
    package var commonName: String
    /// In seconds since 1970.
    package var notBefore: Int64
    package var notAfter: Int64
    /// In the words of openssl.cnf: `("basicConstraints", "critical,CA:FALSE")`.
    package var extensions: [(name: String, value: String)] = []

    package init(commonName: String, notBefore: Int64, notAfter: Int64) {
        self.commonName = commonName
        self.notBefore = notBefore
        self.notAfter = notAfter
    }

    /// Adds alternative names: addresses, or else names of hosts, with `*.` or without.
    package mutating func add(names: [String]) throws(CertificateError) {
        guard !names.isEmpty else { throw CertificateError("a certificate needs a name") }
        var parts: [String] = []
        for name in names { parts.append(try HostPattern(parsing: name).alternativeName) }
        let prefix = commonName.isEmpty ? "critical," : ""
        extensions.append(("subjectAltName", prefix + parts.joined(separator: ",")))
    }

    /// A certificate for a key, signed by an issuer, or else by the key itself.
    package func issued(
        for key: PrivateKey, by issuer: (certificate: Certificate, key: PrivateKey)? = nil
    ) throws(CertificateError) -> Certificate {
        ERR_clear_error()
        guard let pointer = X509_new() else { throw .withReasons("no certificate can be made") }
        let certificate = Certificate(adopting: pointer)
        let isMade = withExtendedLifetime((certificate, key, issuer)) {
            let issuerPointer = issuer?.certificate.pointer ?? pointer
            return X509_set_version(pointer, 2) == 1 && setSerialNumber(of: pointer)
                && setTimes(of: pointer) && setSubject(of: pointer)
                && X509_set_issuer_name(pointer, X509_get_subject_name(issuerPointer)) == 1
                && X509_set_pubkey(pointer, key.pointer) == 1
                && extensions.allSatisfy {
                    ossl_add_extension(pointer, issuerPointer, $0.name, $0.value) == 1
                }
                && sign(pointer, issuer?.key ?? key)
        }
        guard isMade else { throw .withReasons("the certificate cannot be made") }
        return certificate
    }

    /// 127 random bits, never none of them.
    private func setSerialNumber(of certificate: OpaquePointer) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 16)
        guard RAND_bytes(&bytes, 16) == 1 else { return false }
        bytes[0] = bytes[0] & 0x3F | 0x40
        guard let number = BN_bin2bn(bytes, 16, nil) else { return false }
        defer { BN_free(number) }
        return BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nil
    }

    private func setTimes(of certificate: OpaquePointer) -> Bool {
        let times = (ASN1_TIME_set(nil, Int(notBefore)), ASN1_TIME_set(nil, Int(notAfter)))
        defer {
            ASN1_STRING_free(times.0)
            ASN1_STRING_free(times.1)
        }
        return X509_set1_notBefore(certificate, times.0) == 1
            && X509_set1_notAfter(certificate, times.1) == 1
    }

    private func setSubject(of certificate: OpaquePointer) -> Bool {
        let name = Array(commonName.utf8)
        return name.isEmpty
            || X509_NAME_add_entry_by_txt(
                X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, name, Int32(name.count),
                -1, 0) == 1
    }

    private func sign(_ certificate: OpaquePointer, _ key: PrivateKey) -> Bool {
        X509_sign(certificate, key.pointer, key.needsDigest ? EVP_sha256() : nil) > 0
    }
}

extension HostPattern {
    /// As openssl.cnf writes it. What it holds was parsed, so no comma can begin another name.
    fileprivate var alternativeName: String {
        get throws(CertificateError) {
            guard wildcard != .anyDepth else {
                throw CertificateError("the host \"\(text)\": a certificate has no ** in a name")
            }
            return isAddress ? "IP:\(text)" : "DNS:\(text)"
        }
    }
}

extension Identity {
    /// Makes a key (P-256) and a certificate that it signs itself, in memory: for development and tests.
    ///
    /// Nobody trusts it who was not told to: give a client its certificate or its pin.
    ///
    /// - Parameters:
    ///   - names: names of hosts, `*.name` too, and addresses; the first is the subject.
    ///   - days: how long from now it is valid. It is valid for the hour before now as well, since clocks
    ///     differ.
    public static func selfSigned(
        names: [String] = ["localhost"], validFor days: Int = 30
    ) throws(CertificateError) -> Identity {
        guard (1...36_500).contains(days) else {
            throw CertificateError("a certificate is valid for 1 to 36500 days, not \(days)")
        }
        let now = Int64(time(nil))
        // X.520 has 64 characters for a common name.
        let first = names.first.map { $0.utf8.count <= 64 ? $0 : "" } ?? ""
        var template = CertificateTemplate(
            commonName: first, notBefore: now - 3600, notAfter: now + Int64(days) * 86_400)
        template.extensions = [
            ("basicConstraints", "critical,CA:FALSE"), ("keyUsage", "critical,digitalSignature"),
            ("extendedKeyUsage", "serverAuth"), ("subjectKeyIdentifier", "hash"),
        ]
        try template.add(names: names)
        let key = try PrivateKey(.ec("P-256"))
        return try Identity(certificates: [template.issued(for: key)], key: key)
    }
}
