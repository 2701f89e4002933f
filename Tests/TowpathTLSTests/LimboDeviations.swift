/// Where Towpath's verdict is not the one that x509-limbo expects, by id, and why that stays so.
///
/// A case that is missing here fails the test, and so does one that is here and agrees.
enum LimboDeviations {
    enum Mode { case both, lenientOnly, strictOnly }

    struct Deviation {
        let id: String
        let mode: Mode
        let reason: String
    }

    /// Those of a mode.
    static func known(_ list: [Deviation], isStrict: Bool) -> [Deviation] {
        let other = isStrict ? Mode.lenientOnly : .strictOnly
        return list.filter { $0.mode != other }
    }

    // MARK: Accepted, though the case expects a refusal

    static let accepted: [Deviation] =
        group(
            "the common name is not looked at, so what it says does no harm",
            [
                "case-mismatch", "ipv4-hex-mismatch", "ipv4-leading-zeros-mismatch",
                "ipv6-non-rfc5952-mismatch", "ipv6-uncompressed-mismatch",
                "ipv6-uppercase-mismatch", "not-in-san", "punycode-not-in-san",
                "utf8-vs-punycode-mismatch",
            ].map { "webpki::cn::\($0)" })
        + group(
            "a rule for authorities of the web on the extended key usage, pedantic for a client:"
                + " private authorities do otherwise, and the usage itself is checked",
            [
                "webpki::eku::ee-anyeku", "webpki::eku::ee-critical-eku",
                "webpki::eku::ee-without-eku", "webpki::eku::root-has-eku",
            ])
        + group(
            "Towpath has no list of public suffixes",
            [
                "webpki::san::public-suffix-multi-label-wildcard-san",
                "webpki::san::public-suffix-private-namespace-wildcard-san",
            ])
        + group(
            "RFC 5280 §4.1.2.2 wants such serial numbers to be handled gracefully",
            ["rfc5280::serial::too-long", "rfc5280::serial::zero"])
        + group(
            "an RSA key of 2052 bits is not weaker than one of 2048",
            [
                "webpki::forbidden-rsa-key-not-divisible-by-8-in-leaf",
                "webpki::forbidden-rsa-not-divisible-by-8-in-root",
            ])
        + group(
            "underscores occur in names of hosts, and are compared like any other byte",
            ["rfc5280::san::underscore-dns"])
        + group(
            "name constraints are heeded, critical or not, as webpki::nc::permitted-dns-match-"
                + "noncritical expects for the same chain",
            ["rfc5280::nc::permitted-dns-match-noncritical"])
        + group(
            "private authorities write constraints with a leading dot, which only narrows them",
            ["rfc5280::nc::invalid-dnsname-leading-period"])
        + group(
            "policies are not asked for, so whether their constraints are critical has no effect",
            ["rfc5280::pc::ica-noncritical-pc"])
        + group(
            "a CRL without a number cannot be ordered among others, but what it revokes is revoked",
            ["crl::crlnumber-missing"])
        + group(
            "a SHOULD of the Baseline Requirements; whether the names are critical has no effect",
            ["webpki::san::san-critical-with-nonempty-subject"])
        + group(
            "an anchor is trusted for its key; its own key identifiers only help to find it",
            ["webpki::aki::root-with-aki-missing-keyidentifier"])
        + group(
            "key identifiers only help to build the chain; strict mode asks for them",
            [
                "rfc5280::aki::intermediate-missing-aki", "rfc5280::aki::leaf-missing-aki",
                "rfc5280::ski::intermediate-missing-ski", "rfc5280::ski::root-missing-ski",
            ], .lenientOnly)
        + group(
            "an anchor is trusted for its key, also an old one (RFC 5280 §6.1.1 d); strict mode"
                + " looks at its extensions",
            [
                "rfc5280::root-missing-basic-constraints",
                "rfc5280::root-non-critical-basic-constraints",
            ], .lenientOnly)
        + group(
            "a leaf without CA:TRUE signs nothing that is accepted, whatever its key usage says;"
                + " strict mode refuses it",
            ["rfc5280::leaf-ku-keycertsign"], .lenientOnly)
        + group(
            "what is critical has no effect on a name that is understood; strict mode asks for it",
            ["rfc5280::san::noncritical-with-empty-subject"], .lenientOnly)

    // MARK: Refused, though the case expects success

    static let needingPartialChains = [
        "cve::cve-2024-0567", "rfc5280::root-and-intermediate-swapped",
    ]

    static let refused: [Deviation] =
        group(
            "an authority's certificate is no peer's own; webpki::ca-as-leaf expects the refusal",
            ["pathlen::validation-ignores-pathlen-in-leaf", "rfc5280::ca-as-leaf"])
        + group(
            "for OpenSSL the last second of a certificate is already over",
            ["rfc5280::validity::notafter-exact", "rfc5280::validity::notafter-fractional"])
        + group(
            "an anchor that did not sign itself needs allowsPartialChains",
            needingPartialChains)
        + group(
            "OpenSSL builds one chain and does not come back to another issuer of the same name",
            [
                "rfc5280::nc::nc-forbids-alternate-chain-ica",
                "rfc5280::nc::nc-forbids-same-chain-ica",
            ])
        + group(
            "strict mode wants a key usage in each certificate of an authority (RFC 5280 §4.2.1.3)",
            ["crl::issuer-no-keyusage-extension"], .strictOnly)

    private static func group(
        _ reason: String, _ ids: [String], _ mode: Mode = .both
    ) -> [Deviation] {
        ids.map { Deviation(id: $0, mode: mode, reason: reason) }
    }
}
