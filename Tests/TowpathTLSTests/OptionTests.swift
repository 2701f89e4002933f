import Foundation
import TestSupport
import Testing
import TowpathTLS

@Suite("TLS's options")
struct OptionTests {
    @Test("versions that do not meet are told to both sides")
    func versions() throws {
        let pair = try EnginePair.make { client, server in
            client.maximumVersion = .tls12
            server.minimumVersion = .tls13
        }
        guard case .failed(let client, let server) = pair.handshake() else {
            Issue.record("a handshake of two versions")
            return
        }
        #expect(client?.kind == .alert(70) && server?.kind == .handshake)
    }

    @Test("cipher suites and groups are those that were asked for")
    func suites() throws {
        let pair = try EnginePair.make { client, server in
            client.cipherSuites = ["TLS_CHACHA20_POLY1305_SHA256"]
            server.groups = ["P-384"]
        }
        try pair.establish()
        #expect(pair.client.cipherSuite == "TLS_CHACHA20_POLY1305_SHA256")
        #expect(pair.client.group == "secp384r1")
        let older = try EnginePair.make { client, server in
            server.maximumVersion = .tls12
            client.cipherSuites = ["ECDHE-ECDSA-AES128-GCM-SHA256"]
        }
        try older.establish()
        #expect(older.server.cipherSuite == "ECDHE-ECDSA-AES128-GCM-SHA256")
    }

    @Test(
        "an option that cannot have its effect is refused",
        arguments: ["NOSUCH-SUITE", "TLS_NOSUCH", "ALL:@SECLEVEL=0"])
    func refusedSuites(name: String) {
        var configuration = TLSConfiguration(.client)
        configuration.cipherSuites = [name]
        #expect(throws: TLSError.self) { try TLSContext(configuration) }
    }

    @Test(
        "other refusals: groups, protocols, versions, a server without identity or with system trust"
    )
    func refused() throws {
        func isRefused(
            _ role: TLSConfiguration.Role, _ change: (inout TLSConfiguration) -> Void
        ) -> Bool {
            var configuration = TLSConfiguration(role)
            change(&configuration)
            do {
                _ = try TLSContext(configuration)
                return false
            } catch {
                return error.kind == .configuration
            }
        }
        let identity = try Identity.selfSigned()
        #expect(isRefused(.client) { $0.groups = ["nosuch"] })
        #expect(isRefused(.client) { $0.applicationProtocols = [""] })
        #expect(
            isRefused(.client) {
                $0.applicationProtocols = [String(repeating: "a", count: 256)]
            })
        #expect(
            isRefused(.client) {
                $0.minimumVersion = .tls13
                $0.maximumVersion = .tls12
            })
        #expect(isRefused(.client) { $0.revocationLists = [[1, 2, 3]] })
        #expect(isRefused(.client) { $0.keyLogFile = "/nonexistent/folder/log" })
        #expect(isRefused(.server) { _ in })
        #expect(
            isRefused(.server) {
                $0.identities = [identity]
                $0.clientAuthentication = .required
            })
    }

    @Test(
        "BR-031: the application protocol is the server's choice of what both have",
        arguments: [
            (["h2", "http/1.1"], ["http/1.1", "h2"], "http/1.1"), (["h2"], [], nil),
            ([], ["h2"], nil), ([], [], nil),
        ])
    func applicationProtocol(client: [String], server: [String], chosen: String?) throws {
        let pair = try EnginePair.make {
            $0.applicationProtocols = client
            $1.applicationProtocols = server
        }
        try pair.establish()
        #expect(pair.client.applicationProtocol == chosen)
        #expect(pair.server.applicationProtocol == chosen)
    }

    @Test("BR-031: nothing in common ends the handshake with alert 120")
    func noApplicationProtocol() throws {
        let pair = try EnginePair.make {
            $0.applicationProtocols = ["http/1.1"]
            $1.applicationProtocols = ["h2"]
        }
        guard case .failed(let client, let server) = pair.handshake() else {
            Issue.record("they agreed")
            return
        }
        #expect(client?.kind == .alert(120) && server?.description.contains("h2") == true)
    }

    @Test(
        "a pre-shared key proves both sides; another one neither",
        arguments: [TLSVersion.tls12, .tls13])
    func preSharedKey(version: TLSVersion) throws {
        let key = TLSConfiguration.PreSharedKey(identity: "device-1", key: [UInt8](0..<32))
        var client = TLSConfiguration(.client)
        client.maximumVersion = version
        client.preSharedKeys = [key]
        var server = TLSConfiguration(.server)
        server.preSharedKeys = [.init(identity: "x", key: [1]), key]
        let pair = try EnginePair(client, server)
        try pair.establish()
        #expect(pair.client.peerCertificates.isEmpty)
        #expect(pair.client.version == version)
        client.preSharedKeys = [.init(identity: "device-1", key: [UInt8](1..<33))]
        #expect(try EnginePair(client, server).clientError() != nil)
    }

    @Test("one's own verification suspends a client's handshake", arguments: [nil, "not today"])
    func ownVerification(refusal: String?) throws {
        let pair = try EnginePair.make { client, _ in client.hasOwnVerification = true }
        _ = pair.client.handshake()
        pair.client.settle()
        while pair.move() {}
        guard case .wantsVerdict = pair.client.handshake() else {
            Issue.record("the handshake goes on without a verdict")
            return
        }
        #expect(!pair.client.isEstablished && pair.client.verifiedChain.count == 2)
        pair.client.decide(refusal)
        guard case .failed(let client, let server) = pair.handshake() else {
            #expect(refusal == nil)
            return
        }
        #expect(refusal != nil && client?.kind == .rejected && server?.kind == .alert(42))
    }

    @Test("a server chooses among identities by the name asked for")
    func serverName() throws {
        let root = try TestAuthority()
        var server = TLSConfiguration(.server)
        server.identities = [
            try root.issue("DNS:first.test"), try root.issue("DNS:*.second.test"),
        ]
        var client = TLSConfiguration(.client)
        client.trust = .anchors([root.certificate])
        for (name, expected) in [
            ("first.test", "first.test"), ("A.SECOND.test", "*.second.test"),
        ] {
            let pair = try EnginePair(client, server, to: .checked(name))
            try pair.establish()
            #expect(pair.client.peerCertificates.first?.dnsNames == [expected])
        }
        client.verification = .none
        let other = try EnginePair(client, server, to: .checked("other.test"))
        try other.establish()
        #expect(other.client.peerCertificates.first?.dnsNames == ["first.test"])
    }

    @Test("clients prove themselves where the server wants it", arguments: [true, false])
    func clientCertificates(isRequired: Bool) throws {
        let clients = try TestAuthority("Clients")
        let mine = try clients.issue("DNS:client-1", "email:me@example.com", "URI:spiffe://a/b")
        for identities in [[mine], []] {
            let pair = try EnginePair.make { client, server in
                client.identities = identities
                server.clientAuthentication = isRequired ? .required : .optional
                server.trust = .anchors([clients.certificate])
            }
            let outcome = pair.handshake()
            if identities.isEmpty, isRequired {
                #expect(pair.server.failure != nil)
                // The client hears of it with its first read (BR-028).
                #expect(pair.client.readAll().end.error?.kind == .alert(116))
                continue
            }
            guard case .established = outcome else {
                Issue.record("no handshake: \(outcome)")
                continue
            }
            #expect(
                pair.server.verifiedChain.first?.dnsNames
                    == (identities.isEmpty ? nil : ["client-1"]))
            #expect(
                pair.server.peerCertificates.first?.uris
                    == (identities.isEmpty ? nil : ["spiffe://a/b"]))
        }
    }

    @Test("the key log has what Wireshark reads, for its owner's eyes alone")
    func keyLog() throws {
        let file = FileManager.default.temporaryDirectory
            .appending(path: "towpath-\(UInt64.random(in: 0 ... .max)).keys")
        defer { try? FileManager.default.removeItem(at: file) }
        let pair = try EnginePair.make { client, _ in client.keyLogFile = file.path }
        try pair.establish()
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(text.contains("CLIENT_TRAFFIC_SECRET_0 "))
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions]
        #expect(mode as? Int == 0o600)
    }
}
