import TestSupport
import Testing
import TowpathTLS

@Suite("x509-limbo")
struct LimboTests {
    struct Bar: Sendable {
        let isStrict: Bool
        let passed: Int
        let falseAccepts: Int
    }

    /// By default and strict: what OpenSSL does alone, to be bettered.
    static let bars = [
        Bar(isStrict: false, passed: 144, falseAccepts: 45),
        Bar(isStrict: true, passed: 151, falseAccepts: 37),
    ]

    @Test("every verdict is the expected one, or a known deviation", arguments: bars)
    func verdicts(bar: Bar) throws {
        guard let cases = try Limbo.load() else { return }
        var (passed, skipped) = (0, 0)
        var (accepted, refused) = (Set<String>(), Set<String>())
        for each in cases {
            guard each.unsupported == nil else {
                skipped += 1
                continue
            }
            let error = try each.verdict(isStrict: bar.isStrict)
            switch (error == nil, each.isExpectedToSucceed) {
            case (true, false): accepted.insert(each.id)
            case (false, true): refused.insert(each.id)
            default: passed += 1
            }
        }
        print(
            "x509-limbo, \(bar.isStrict ? "strict" : "default"): \(cases.count) cases,"
                + " \(passed) pass, \(accepted.count) false accepts,"
                + " \(refused.count) false rejects, \(skipped) skipped")
        #expect(cases.count == 208 && skipped <= 10)
        #expect(passed >= bar.passed && accepted.count <= bar.falseAccepts)
        Self.expect(
            accepted, LimboDeviations.known(LimboDeviations.accepted, isStrict: bar.isStrict))
        Self.expect(refused, LimboDeviations.known(LimboDeviations.refused, isStrict: bar.isStrict))
    }

    private static func expect(_ found: Set<String>, _ known: [LimboDeviations.Deviation]) {
        let new = found.subtracting(known.map(\.id)).sorted()
        #expect(new == [], "new deviations")
        let gone = known.filter { !found.contains($0.id) }.map { "\($0.id): \($0.reason)" }
        #expect(gone == [], "deviations that are none any more")
    }

    struct Rule: Sendable {
        let id: String
        let code: Int32
        let text: String
    }

    /// The codes are X509_V_ERR_…: INVALID_EXTENSION 41, INVALID_NON_CA 37, EXCLUDED_VIOLATION 48,
    /// UNSUPPORTED_CONSTRAINT_SYNTAX 52, UNSUPPORTED_NAME_SYNTAX 53, UNSUPPORTED_SIGNATURE_ALGORITHM 76.
    static let rules = [
        Rule(id: "webpki::ee-basicconstraints-ca", code: 37, text: "CA:TRUE"),
        Rule(id: "webpki::forbidden-dsa-leaf", code: 76, text: "DSA"),
        Rule(id: "webpki::forbidden-dsa-root", code: 76, text: "DSA"),
        Rule(
            id: "webpki::nc::intermediate-permitted-excluded-subtrees-both-null", code: 52,
            text: "constrain nothing"),
        Rule(
            id: "webpki::nc::intermediate-permitted-excluded-subtrees-both-empty-sequences",
            code: 52, text: "constrain nothing"),
        Rule(id: "webpki::malformed-aia", code: 41, text: "authorityInfoAccess is malformed"),
        Rule(
            id: "rfc5280::nc::not-allowed-in-ee-critical", code: 41,
            text: "only one of an authority may have"),
        Rule(
            id: "rfc5280::nc::not-allowed-in-ee-noncritical", code: 41,
            text: "only one of an authority may have"),
        Rule(
            id: "rfc5280::nc::nc-permits-invalid-dns-san", code: 53,
            text: "malformed: \".example.com\""),
        Rule(
            id: "rfc5280::nc::nc-permits-invalid-email-san", code: 53,
            text: "malformed: \"invalid@address@example.com\""),
        Rule(
            id: "rfc5280::nc::nc-forbids-dnsname-wildcard-san", code: 48,
            text: "wildcard is also for bar.example.com"),
        Rule(id: "cve::cve-2025-61727", code: 48, text: "wildcard is also for bar.example.com"),
    ]

    @Test("a rule of Towpath's own says what is wrong", arguments: rules)
    func rule(rule: Rule) throws {
        guard let cases = try Limbo.load() else { return }
        let each = try #require(cases.first { $0.id == rule.id })
        let error = try #require(try each.verdict(isStrict: false))
        #expect(error.kind == .certificate(code: rule.code))
        #expect(error.description.contains(rule.text), "\(error)")
    }

    @Test("a leaf that is trusted by itself may be anything", arguments: [false, true])
    func trustedLeaf(allowsPartialChains: Bool) throws {
        guard let cases = try Limbo.load() else { return }
        for id in [
            "webpki::ee-basicconstraints-ca", "webpki::malformed-aia",
            "rfc5280::nc::not-allowed-in-ee-critical", "cve::cve-2025-61727",
        ] {
            let each = try #require(cases.first { $0.id == id })
            var configuration = try each.configuration(isStrict: false)
            guard case .anchors(let anchors) = configuration.trust else { continue }
            configuration.trust = .anchors(anchors + [try each.leaf])
            configuration.allowsPartialChains = allowsPartialChains
            let error = try ChainVerifier.verify(
                each.leaf, intermediates: each.intermediates, for: each.name, configuration)
            #expect(error == nil, "\(id): \(error?.description ?? "")")
        }
    }

    @Test("partial chains let an anchor be signed by another")
    func partial() throws {
        guard let cases = try Limbo.load() else { return }
        for id in LimboDeviations.needingPartialChains {
            let each = try #require(cases.first { $0.id == id })
            var configuration = try each.configuration(isStrict: false)
            configuration.allowsPartialChains = true
            let error = try ChainVerifier.verify(
                each.leaf, intermediates: each.intermediates, for: each.name, configuration)
            #expect(error == nil, "\(id): \(error?.description ?? "")")
        }
    }
}
