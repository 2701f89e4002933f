internal import CTowpathOpenSSL

/// What X509_verify_cert(3) lets through, checked on the chain that it found valid.
///
/// Only what no authority of the web issues. The leaf may be anything where it is trusted by itself.
struct ChainRules {
    private let chain: [Certificate]
    private let anchors: [Certificate]

    /// - Parameter chain: The leaf first, the anchor last.
    init(_ chain: [Certificate], anchors: [Certificate]) {
        self.chain = chain
        self.anchors = anchors
    }

    var violation: TLSError? {
        if let error = oldKey ?? emptyConstraints { return error }
        guard let leaf = chain.first, chain.count > 1, !anchors.contains(leaf) else { return nil }
        return Self.authority(leaf) ?? Self.constraints(leaf) ?? Self.access(leaf)
            ?? Self.hostName(leaf) ?? Self.mailAddress(leaf) ?? Self.address(leaf)
            ?? excludedByWildcard(leaf)
    }

    // MARK: Any certificate of the chain

    /// DSA is in neither RFC 8446 §4.2.3 nor the Baseline Requirements §6.1.5.
    private var oldKey: TLSError? {
        let found = chain.first { certificate in
            X509_get0_pubkey(certificate.pointer).map { EVP_PKEY_is_a($0, "DSA") == 1 } ?? false
        }
        return found.map {
            Self.error(
                X509_V_ERR_UNSUPPORTED_SIGNATURE_ALGORITHM, $0,
                "its key is for DSA, which is not used any more")
        }
    }

    /// RFC 5280 §4.2.1.10: name constraints that are an empty sequence must not be issued.
    private var emptyConstraints: TLSError? {
        let found = chain.dropFirst().first { certificate in
            guard let constraints = ossl_name_constraints(certificate.pointer) else { return false }
            defer { NAME_CONSTRAINTS_free(constraints) }
            return ossl_permitted_count(constraints) == 0 && ossl_excluded_count(constraints) == 0
        }
        return found.map {
            Self.error(
                X509_V_ERR_UNSUPPORTED_CONSTRAINT_SYNTAX, $0,
                "it has name constraints that constrain nothing")
        }
    }

    // MARK: The leaf

    /// The Baseline Requirements §7.1.2.7.8: whoever serves something must not be able to sign others
    /// (RFC 5280 §4.2.1.9 leaves it open).
    private static func authority(_ leaf: Certificate) -> TLSError? {
        // X509_check_ca(3) would have to find the key usage for it too.
        guard X509_get_extension_flags(leaf.pointer) & UInt32(EXFLAG_CA) != 0 else { return nil }
        return error(
            X509_V_ERR_INVALID_NON_CA, leaf,
            "it is one of an authority (CA:TRUE), and no peer's own; make it anew with CA:FALSE")
    }

    /// RFC 5280 §4.2.1.10: name constraints are for certificates of authorities only.
    private static func constraints(_ leaf: Certificate) -> TLSError? {
        guard ossl_has_extension(leaf.pointer, NID_name_constraints) == 1 else { return nil }
        return error(
            X509_V_ERR_INVALID_EXTENSION, leaf,
            "it has name constraints, which only one of an authority may have")
    }

    /// RFC 5280 §4.2.2.1: at least one description, each with a method and a place.
    private static func access(_ leaf: Certificate) -> TLSError? {
        guard ossl_has_malformed_access(leaf.pointer) == 1 else { return nil }
        return error(
            X509_V_ERR_INVALID_EXTENSION, leaf, "its authorityInfoAccess is malformed")
    }

    /// RFC 5280 §4.2.1.6: names in the syntax of RFC 1034 §3.5. Underscores and a dot at the end do
    /// occur, and harm nobody.
    private static func hostName(_ leaf: Certificate) -> TLSError? {
        let found = leaf.names(ofType: GEN_DNS).first { name in
            let labels = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            let hasEmptyLabel = labels.dropLast().contains(where: \.isEmpty) || name.isEmpty
            return hasEmptyLabel || !name.allSatisfy { (0x21...0x7E).contains($0) }
        }
        return found.map { malformedName(String(decoding: $0, as: UTF8.self), leaf) }
    }

    /// RFC 5280 §4.2.1.6: `Local-part@Domain` (RFC 2821 §4.1.2), without more around it.
    private static func mailAddress(_ leaf: Certificate) -> TLSError? {
        let found = leaf.names(ofType: GEN_EMAIL).first { address in
            // A quoted local part may have anything in it.
            if address.first == UInt8(ascii: "\"") { return false }
            let parts = address.split(
                separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
            return parts.count != 2 || parts.contains(where: \.isEmpty)
        }
        return found.map { malformedName(String(decoding: $0, as: UTF8.self), leaf) }
    }

    /// RFC 5280 §4.2.1.6: four bytes or sixteen.
    private static func address(_ leaf: Certificate) -> TLSError? {
        let found = leaf.names(ofType: GEN_IPADD).first { $0.count != 4 && $0.count != 16 }
        return found.map { malformedName("an address of \($0.count) bytes", leaf) }
    }

    /// RFC 5280 §4.2.1.10 with RFC 9525 §6.3: `*.example.com` is also for `bar.example.com`, which an
    /// authority above may exclude (CVE-2025-61727).
    private func excludedByWildcard(_ leaf: Certificate) -> TLSError? {
        // A set, as both lists may be long.
        let parents = Set(
            leaf.dnsNames.filter { $0.hasPrefix("*.") }.map { $0.dropFirst(2).lowercased() })
        guard !parents.isEmpty else { return nil }
        for authority in chain.dropFirst() {
            let found = authority.excludedHosts.first { host in
                // That of a leading dot is of names below it only, which no wildcard reaches.
                guard let dot = host.firstIndex(of: "."), dot != host.startIndex else {
                    return false
                }
                return parents.contains(host[dot...].dropFirst().lowercased())
            }
            if let found {
                return Self.error(
                    X509_V_ERR_EXCLUDED_VIOLATION, leaf,
                    "its wildcard is also for \(found), which \(authority.subject) excludes")
            }
        }
        return nil
    }

    // MARK: Errors

    private static func malformedName(_ name: String, _ leaf: Certificate) -> TLSError {
        error(
            X509_V_ERR_UNSUPPORTED_NAME_SYNTAX, leaf,
            "one of the names that it is for is malformed: \(name.debugDescription)")
    }

    private static func error(
        _ code: Int32, _ certificate: Certificate, _ reason: String
    ) -> TLSError {
        TLSError(
            .certificate(code: code),
            "the peer's certificate is not valid: \(reason)"
                + " (\(certificate.subject), by \(certificate.issuer))")
    }
}

extension Certificate {
    /// The subtrees of host names for which it must not be an authority.
    fileprivate var excludedHosts: [String] {
        guard let constraints = ossl_name_constraints(pointer) else { return [] }
        defer { NAME_CONSTRAINTS_free(constraints) }
        return (0..<ossl_excluded_count(constraints)).compactMap { index in
            var bytes: UnsafePointer<UInt8>?
            var count: Int32 = 0
            guard ossl_excluded_host(constraints, index, &bytes, &count) == 1, count >= 0
            else { return nil }
            return String(
                decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
        }
    }
}
