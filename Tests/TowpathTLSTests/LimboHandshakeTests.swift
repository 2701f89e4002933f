import TestSupport
import Testing
import TowpathTLS

@Suite("x509-limbo, through handshakes")
struct LimboHandshakeTests {
    /// What OpenSSL itself refuses to show: keys that are too small, or cannot be read.
    static let unservable: Set<String> = [
        "invalid::invalid-issuer-key", "webpki::forbidden-p192-leaf",
        "webpki::forbidden-weak-rsa-in-leaf",
    ]

    /// Refused before anybody sees the certificate: no suite that is offered signs with DSA.
    static let unheard: Set<String> = ["webpki::forbidden-dsa-leaf"]

    /// Without a name no client connects.
    static let nameless: Set<String> = ["rfc5280::nc::permitted-dn-match"]

    enum Result {
        case unservable(any Error)
        case made(client: TLSError?, server: TLSError?)
    }

    @Test("a handshake ends as the verdict without one", arguments: [false, true])
    func verdicts(isStrict: Bool) throws {
        guard let cases = try Limbo.load() else { return }
        var (made, completed) = (0, 0)
        var unheard: Set<String> = []
        var unservable: [String: String] = [:]
        for each in cases where each.isOfServer && each.peerCertificateKey != nil {
            if Self.nameless.contains(each.id) { continue }
            switch try Self.handshake(each, isStrict: isStrict) {
            case .unservable(let error): unservable[each.id] = "\(error)"
            case .made(let client, let server):
                made += 1
                let expected = try each.verdict(isStrict: isStrict)
                #expect((client == nil) == (expected == nil), "\(each.id)")
                #expect((server == nil) == (expected == nil), "\(each.id)")
                guard let error = client, let expected else {
                    completed += 1
                    continue
                }
                if case .certificate = error.kind {
                    #expect(error.kind == expected.kind, "\(each.id)")
                } else {
                    unheard.insert(each.id)
                }
            }
        }
        print(
            "x509-limbo, \(isStrict ? "strict" : "default"): \(made) handshakes,"
                + " \(completed) to their end, \(made - completed - unheard.count) refused for the"
                + " certificate, \(unheard.count) before it; not made: \(unservable.count) that"
                + " OpenSSL does not serve, \(Self.nameless.count) without a name")
        for (id, reason) in unservable.sorted(by: { $0.key < $1.key }) {
            print("  not served: \(id): \(reason)")
        }
        #expect(Set(unservable.keys) == Self.unservable)
        #expect(unheard == Self.unheard)
    }

    struct Alert: Sendable {
        let id: String
        let alert: UInt8
    }

    /// RFC 8446 §6.2.
    static let alerts = [
        Alert(id: "crl::revoked-certificate-with-crl", alert: 44),
        Alert(id: "rfc5280::validity::expired-leaf", alert: 45),
        Alert(id: "webpki::san::mismatch-domain-san", alert: 42),
        Alert(id: "webpki::ee-basicconstraints-ca", alert: 46),
    ]

    @Test("the server hears the alert for it", arguments: alerts)
    func alert(alert: Alert) throws {
        guard let cases = try Limbo.load() else { return }
        let each = try #require(cases.first { $0.id == alert.id })
        guard case .made(_, let server) = try Self.handshake(each, isStrict: false) else {
            Issue.record("not served")
            return
        }
        #expect(server?.kind == .alert(alert.alert))
    }

    private static func handshake(_ each: Limbo.Case, isStrict: Bool) throws -> Result {
        let chain = ([each.peerCertificate] + each.untrustedIntermediates).joined(separator: "\n")
        let key = try #require(each.peerCertificateKey)
        let server: TLSContext
        do {
            var configuration = TLSConfiguration(.server)
            configuration.identities = [
                try Identity(pem: chain, keyPEM: key)
            ]
            server = try TLSContext(configuration)
        } catch {
            return .unservable(error)
        }
        let client = try TLSContext(each.configuration(isStrict: isStrict))
        let errors = try EnginePair(client, server, to: each.name).errors()
        return .made(client: errors.client, server: errors.server)
    }
}
