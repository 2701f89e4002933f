import CTowpathOpenSSL
import Foundation
import TestSupport
import Testing
import TowpathTLS

@Suite("Whom a client believes")
struct VerificationTests {
    /// The error of a client that wants to reach a name, and what the server hears of it.
    private func errors(
        _ identity: Identity, to name: TLSPeerName? = .name("localhost"),
        _ change: (inout TLSConfiguration) -> Void
    ) throws -> (client: TLSError?, server: TLSError?) {
        var client = TLSConfiguration(.client)
        var server = TLSConfiguration(.server)
        server.identities = [identity]
        change(&client)
        return try EnginePair(client, server, to: name).errors()
    }

    private func code(_ error: TLSError?) -> Int32? {
        if case .certificate(let code)? = error?.kind { code } else { nil }
    }

    private func host(_ name: String) throws -> TLSPeerName { try .checked(name) }

    @Test(
        "BR-022: addresses and names of a certificate are two things",
        arguments: [
            (["IP:97.46.112.108"], "a.pl", false), (["DNS:127.0.0.1"], "127.0.0.1", false),
            (["IP:127.0.0.1", "DNS:other.example"], "127.0.0.1", true), ([], "127.0.0.1", false),
            (["IP:::1"], "::1", true), (["DNS:localhost"], "127.0.0.1", false),
            (["IP:127.0.0.1"], "localhost", false),
        ])
    func addresses(names: [String], host: String, isRight: Bool) throws {
        let root = try TestAuthority()
        // (d): the address stands in the common name.
        let identity = try root.issue(TestAuthority.Request(names.isEmpty ? host : "leaf", names))
        let addresses: [String: [UInt8]] = [
            "127.0.0.1": [127, 0, 0, 1], "::1": [UInt8](repeating: 0, count: 15) + [1],
        ]
        let name: TLSPeerName = try addresses[host].map { .address($0) } ?? .checked(host)
        let error = try errors(identity, to: name) { $0.trust = .anchors([root.certificate]) }
            .client
        #expect((error == nil) == isRight, "\(error.map { "\($0)" } ?? "no error")")
        if !isRight {
            #expect(
                [X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH].contains(code(error))
            )
        }
    }

    @Test(
        "BR-023: a star is the whole first label, and one label alone",
        arguments: [
            ("*-5wao1o.example.com", "xn--rksmrgs-5wao1o.example.com", false),
            ("*.example.com", "a.b.example.com", false), ("*.example.com", "example.com", false),
            ("*.example.com", "a.example.com", true),
            ("x*.example.org", "xn--tst-bma.example.org", false),
            ("*.xn--foobar.com", "www.xn--foobar.com", true),
            ("xn--*.example.com", "xn--a.example.com", false),
            ("f*.example.com", "foo.example.com", false), ("EXAMPLE.com", "example.COM", true),
            // Whether a star may stand for a whole registry, OpenSSL leaves to the authorities.
            ("*.com", "example.com", false),
        ])
    func wildcards(pattern: String, name: String, isRight: Bool) throws {
        let root = try TestAuthority()
        let identity = try root.issue("DNS:\(pattern)")
        let error = try errors(identity, to: .checked(name)) {
            $0.trust = .anchors([root.certificate])
        }.client
        #expect((error == nil) == isRight, "\(error.map { "\($0)" } ?? "no error")")
        if let error { #expect(error.description.contains(pattern), "\(error)") }
    }

    @Test("the common name is no name, and one trailing dot is none either")
    func commonName() throws {
        let root = try TestAuthority()
        let trust: (inout TLSConfiguration) -> Void = { $0.trust = .anchors([root.certificate]) }
        let nameless = try root.issue(TestAuthority.Request("localhost"))
        #expect(code(try errors(nameless, trust).client) == X509_V_ERR_HOSTNAME_MISMATCH)
        let right = try root.issue("DNS:localhost")
        #expect(try errors(right, to: .checked("localhost."), trust).client == nil)
    }

    @Test(
        "what is no name is refused before anything is sent",
        arguments: [
            "", ".", "..", ".example.test", "a..b", "localhost..", "a b", "a/b", "*.example.com",
            "a\0b", String(repeating: "a", count: 64) + ".com", "ex\u{E4}mple.com",
        ])
    func names(name: String) {
        #expect(throws: TLSError.self) { try TLSPeerName.checked(name) }
    }

    @Test("a client without a name to check is refused, unless it says that it checks nothing")
    func withoutName() throws {
        let root = try TestAuthority()
        let identity = try root.issue("DNS:localhost")
        #expect(throws: TLSError.self) {
            try errors(identity, to: nil) { $0.trust = .anchors([root.certificate]) }
        }
        #expect(try errors(identity, to: nil) { $0.verification = .none }.client == nil)
    }

    @Test("each fault has its name, and the peer hears the alert that the standard asks for")
    func faults() throws {
        let root = try TestAuthority()
        let stranger = try TestAuthority("Another Root")
        func request(_ change: (inout TestAuthority.Request) -> Void) -> TestAuthority.Request {
            var request = TestAuthority.Request("leaf", ["DNS:localhost"])
            change(&request)
            return request
        }
        let cases: [(String, Identity, Int32, UInt8)] = [
            (
                "expired", try root.issue(request { $0.validity = .past }),
                X509_V_ERR_CERT_HAS_EXPIRED, 45
            ),
            (
                "not yet valid", try root.issue(request { $0.validity = .future }),
                X509_V_ERR_CERT_NOT_YET_VALID, 42
            ),
            (
                "unknown authority", try stranger.issue("DNS:localhost"),
                X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, 48
            ),
            (
                "self-signed", try .selfSigned(), X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, 48
            ),
            (
                "for clients only", try root.issue(request { $0.usage = "clientAuth" }),
                X509_V_ERR_INVALID_PURPOSE, 43
            ),
            (
                "another host", try root.issue("DNS:example.com"), X509_V_ERR_HOSTNAME_MISMATCH, 42
            ),
        ]
        for (name, identity, expected, alert) in cases {
            let (client, server) = try errors(identity) { $0.trust = .anchors([root.certificate]) }
            #expect(code(client) == expected, "\(name): \(client.map { "\($0)" } ?? "none")")
            #expect(server?.kind == .alert(alert), "\(name): \(server.map { "\($0)" } ?? "none")")
        }
    }

    @Test("BR-029: a chain leads to a root that is trusted, whatever else is sent")
    func crossSigned() throws {
        let root = try TestAuthority("X1")
        var oldRequest = TestAuthority.Request("X3")
        oldRequest.isAuthority = true
        oldRequest.usage = nil
        oldRequest.validity = .past
        let old = try TestAuthority(oldRequest)
        var crossRequest = TestAuthority.Request("X1")
        crossRequest.isAuthority = true
        crossRequest.usage = nil
        let cross = try TestAuthority(crossRequest, by: old, reusing: root)
        let middle = try TestAuthority("R3", by: root)
        let leaf = try TestAuthority(TestAuthority.Request("leaf", ["DNS:localhost"]), by: middle)
        let other = try TestAuthority("Unrelated")
        let chains: [(String, [Certificate], Bool)] = [
            ("in order", [middle.certificate, cross.certificate], true),
            ("reversed", [cross.certificate, middle.certificate], true),
            (
                "a stranger between", [other.certificate, middle.certificate, cross.certificate],
                true
            ),
            ("the middle is missing", [cross.certificate], false),
        ]
        for anchors in [[root.certificate], [root.certificate, old.certificate]] {
            for (name, chain, isRight) in chains {
                let error = try errors(leaf.identity(chain: chain)) { $0.trust = .anchors(anchors) }
                    .client
                #expect((error == nil) == isRight, "\(name): \(error.map { "\($0)" } ?? "-")")
                if !isRight {
                    #expect(code(error) == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY)
                }
            }
        }
    }

    @Test("an authority in the middle is an anchor only where partial chains are allowed")
    func partialChain() throws {
        let root = try TestAuthority()
        let middle = try TestAuthority("Middle", by: root)
        let identity = try middle.issue("DNS:localhost")
        for isAllowed in [true, false] {
            let error = try errors(identity) {
                $0.trust = .anchors([middle.certificate])
                $0.allowsPartialChains = isAllowed
            }.client
            #expect((error == nil) == isAllowed)
        }
    }

    @Test("the host's certificates are read once, and do not vouch for ours")
    func systemTrust() throws {
        let root = try TestAuthority()
        let (client, _) = try errors(root.issue("DNS:localhost")) { _ in }
        #expect(code(client) == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY)
    }
}

@Suite("What authorities took back")
struct RevocationTests {
    @Test(
        "a revoked certificate is refused, others of the same authority are not",
        arguments: [true, false])
    func lists(isPEM: Bool) throws {
        let root = try CertificateAuthority(extensions: [])
        let good = try root.identity(names: ["localhost"])
        let bad = try root.identity(names: ["localhost"])
        let list = try root.revocationList(of: [bad.leaf])
        let bytes = isPEM ? Array(list.utf8) : try der(list)
        for (identity, isRevoked) in [(good, false), (bad, true)] {
            var client = TLSConfiguration(.client)
            client.trust = .anchors([root.certificate])
            client.revocationLists = [bytes]
            var server = TLSConfiguration(.server)
            server.identities = [identity]
            let pair = try EnginePair(client, server)
            let error = pair.clientError()
            if isRevoked {
                #expect(error?.kind == .certificate(code: X509_V_ERR_CERT_REVOKED))
                #expect(pair.server.failure?.kind == .alert(44))
            } else {
                #expect(error == nil, "\(error as Any)")
            }
        }
    }

    private func der(_ pem: String) throws -> [UInt8] {
        let lines = pem.split(separator: "\n").filter { !$0.hasPrefix("-----") }
        return [UInt8](try #require(Data(base64Encoded: lines.joined())))
    }
}
