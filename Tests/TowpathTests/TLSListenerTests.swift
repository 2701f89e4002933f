import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("Listeners through TLS", .timeLimit(.minutes(1)))
struct TLSListenerTests {
    @Test("BR-020: those who speak plain text or leave do not disturb the others")
    func disturbers() async throws {
        let server = try await SecureListener()
        try await server.serve {
            let good = server.client()
            try await expectEcho(of: "first", from: good)
            for round in 0..<50 {
                let plain = server.plainClient()
                switch round % 3 {
                case 0:
                    try await plain.send("GET / HTTP/1.1\r\n\r\n".utf8)
                    expectEqual(try await server.failedHandshake(), Streams.error(.notTLS))
                    await plain.close()
                case 1:
                    try await plain.send([22, 3, 1])
                    try await plain.finish()
                    expectEqual(try await server.failedHandshake(), Streams.error(.truncated))
                    await plain.close()
                default:
                    let stranger = Connection(to: server.listener.localEndpoint) {
                        TLS().serverName("localhost")
                    }
                    let error = await Streams.failure { try await stranger.start() }
                    #expect(error == Streams.error(.certificateInvalid))
                    let theirs = try await server.failedHandshake()
                    #expect(theirs.alert == 48, "\(theirs)")
                }
                try await expectEcho(of: "round \(round)", from: good)
            }
            await good.close()
        }
    }

    @Test("one who says nothing is let go after the handshake's time, and holds up nobody")
    func silent() async throws {
        let server = try await SecureListener { tls, _ in
            tls.handshakeTimeout(.milliseconds(200)).handshakeLimit(1)
        }
        try await server.serve {
            let silent = server.plainClient()
            try await silent.start()
            let error = try await server.failedHandshake()
            #expect(error == Streams.error(.timedOut))
            expectEqual(try await silent.receive(atMost: 1), nil)
            await silent.close()
            let client = server.client()
            try await expectEcho(of: "next", from: client)
            await client.close()
        }
    }

    @Test("a new generation serves who comes from then on; a bad one changes nothing")
    func reload() async throws {
        let server = try await SecureListener()
        let authority = try TestAuthority("New Root")
        let renewed = TLS(identity: try authority.issue("IP:127.0.0.1"))
        try await server.serve {
            let old = server.client()
            try await expectEcho(of: "old", from: old)
            #expect(throws: NetworkError.self) { try server.listener.update(TLS()) }
            let still = server.client { $0.resumption(false) }
            try await expectEcho(of: "still", from: still)
            await still.close()
            try server.listener.update(renewed)
            let new = Connection(to: server.listener.localEndpoint) {
                TLS().trust(anchors: [authority.certificate])
            }
            try await expectEcho(of: "new", from: new)
            try await expectEcho(of: "old still", from: old)
            await new.close()
            await old.close()
        }
    }

    @Test(
        "BR-028: one who only writes learns that its certificate was refused",
        arguments: [TLSVersion.tls12, .tls13], ["none", "expired", "another authority"])
    func clientCertificateLate(version: TLSVersion, kind: String) async throws {
        let clients = try TestAuthority("Clients")
        var request = TestAuthority.Request("client", ["DNS:client"])
        if kind == "expired" { request.validity = .past }
        let issuer = kind == "another authority" ? try TestAuthority("Others") : clients
        let identities = kind == "none" ? [] : [try issuer.issue(request)]
        let server = try await SecureListener { tls, _ in
            tls.peerAuthentication(.required).trust(anchors: [clients.certificate])
                .version(minimum: version, maximum: version)
        }
        try await server.serve {
            let tls = TLS(identities: identities).trust(anchors: [server.root])
            let client = Connection(to: server.listener.localEndpoint) { tls }
            let bytes = [UInt8](repeating: 1, count: 100_000)
            let error = await Streams.failure { while true { try await client.send(bytes) } }
            #expect(error == Streams.error(.refusedByPeer), "\(error as Any)")
            // certificate_required is of TLS 1.3; before it was handshake_failure (RFC 5246 §7.4.6).
            let expected: UInt8 =
                switch kind {
                case "expired": 45
                case "none": version == .tls13 ? 116 : 40
                default: 48
                }
            #expect(error?.alert == expected, "\(error as Any)")
            _ = try await server.failedHandshake()
        }
    }

    @Test("a client that proves itself is known to the handler")
    func clientCertificate() async throws {
        let clients = try TestAuthority("Clients")
        let mine = try clients.issue("DNS:client-1")
        let names = Inbox<[String]>()
        let server = try await SecureListener { tls, _ in
            tls.peerAuthentication(.required).trust(anchors: [clients.certificate])
        }
        try await server.serve { connection in
            names.send(connection.tlsPeer?.verifiedChain.first?.dnsNames ?? [])
            try await echo(connection)
        } while: {
            // Also when the session is taken up again.
            for round in 0..<2 {
                let tls = TLS(identity: mine).trust(anchors: [server.root])
                let client = Connection(to: server.listener.localEndpoint) { tls }
                try await expectEcho(of: "me", from: client)
                if round == 0 { #expect(try await names.next() == ["client-1"]) }
                await client.close()
            }
        }
    }

    @Test("one's own verification decides on both sides", arguments: [true, false])
    func ownVerification(isAccepted: Bool) async throws {
        let asked = Inbox<[Certificate]>()
        let server = try await SecureListener { tls, _ in
            tls.verifier { peer in
                asked.send(peer.certificates)
                return true
            }
        }
        try await server.serve {
            let client = server.client { tls in
                tls.verifier { peer in
                    asked.send(peer.verifiedChain)
                    await Task.yield()
                    return isAccepted
                }
            }
            if isAccepted {
                try await expectEcho(of: "accepted", from: client)
                expectEqual(try await asked.next().count, 2)
                // The listener's, of a client without a certificate.
                #expect(try await asked.next().isEmpty)
                await client.close()
            } else {
                let error = await Streams.failure { try await client.start() }
                #expect(error == Streams.error(.peerRejected))
                expectEqual(try await server.failedHandshake().alert, 42)
            }
        }
        let refusing = try await SecureListener { tls, _ in tls.verifier { _ in false } }
        try await refusing.serve { _ in
            Issue.record("the handler was called")
        } while: {
            let client = refusing.client()
            _ = await Streams.failure {
                try await client.send("x".utf8)
                return try await client.receive(atMost: 1)
            }
            let error = try await refusing.failedHandshake()
            #expect(error == Streams.error(.peerRejected))
            client.abort()
        }
    }

    @Test("pins that match let in, others do not, and those that only report tell of it")
    func pins() async throws {
        let server = try await SecureListener()
        let spare = Pin.sha256("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
        try await server.serve {
            let right = server.client { $0.pins(server.root.pin, backup: spare) }
            try await expectEcho(of: "pinned", from: right)
            await right.close()
            let wrong = server.client {
                $0.pins(.sha256("//////////////////////////////////////////8="), backup: spare)
            }
            let error = await Streams.failure { try await wrong.start() }
            #expect(error == Streams.error(.pinMismatch))
            #expect(error?.message.contains("\(server.root.pin)") == true)
            let malformed = server.client { $0.pins(.sha256("abc"), backup: spare) }
            expectEqual(
                await Streams.failure { try await malformed.start() }, Streams.error(.optionFailed))
            let reports = Inbox<NetworkError>()
            let reporting = server.client { tls in
                var pins = PinSet(pins: [spare])
                pins.allowsNoBackup = true
                pins.reportOnly = true
                return tls.pins(pins).onPinMismatch { reports.send($0) }
            }
            try await expectEcho(of: "reported", from: reporting)
            expectEqual(try await reports.next(), Streams.error(.pinMismatch))
            await reporting.close()
        }
    }

    @Test("a plain connection becomes a secure one, and bytes that came early are refused")
    func upgrade() async throws {
        let authority = try TestAuthority()
        let identity = try authority.issue("IP:127.0.0.1")
        let listener = try await Listener(on: .loopback()) { TCP() }
        let results = Inbox<NetworkError.Code?>()
        try await serving(listener) { connection in
            let line = try await connection.receive(until: "\n".utf8, limit: 100)
            if line == Array("STARTTLS\n".utf8) { try await connection.send("go\n".utf8) }
            if line == Array("RUSH\n".utf8) { try await connection.send("go\nearly".utf8) }
            do {
                let secure = try await connection.upgrade(to: TLS(identity: identity))
                results.send(nil)
                try await echo(secure)
            } catch {
                results.send((error as? NetworkError)?.code)
            }
        } while: {
            func client(_ line: String) async throws -> Connection<TCP> {
                let client = Connection(to: listener.localEndpoint) { TCP() }
                try await client.send(line.utf8)
                return client
            }
            let trust = TLS().trust(anchors: [authority.certificate])
            let plain = try await client("STARTTLS\n")
            expectEqual(try await plain.receive(until: "\n".utf8, limit: 9), Array("go\n".utf8))
            let secure = try await plain.upgrade(to: trust)
            try await expectEcho(of: "secret", from: secure)
            expectEqual(try await results.next(), nil)
            await secure.close()
            // A client that sends on in plain text behind its command.
            let early = try await client("STARTTLS\nMAIL FROM:<a>\n")
            expectEqual(try await results.next(), .handshakeFailed)
            early.abort()
            // A server that does so behind its answer.
            let rushed = try await client("RUSH\n")
            expectEqual(try await rushed.receive(exactly: 3), Array("go\n".utf8))
            try await Streams.until { try rushed.withSocket { $0.unreadByteCount } == 5 }
            let error = await Streams.failure { try await rushed.upgrade(to: trust) }
            #expect(error == Streams.error(.handshakeFailed))
            rushed.abort()
            _ = try await results.next()
        }
    }
}
