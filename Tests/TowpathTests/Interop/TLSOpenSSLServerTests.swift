import TestSupport
import Testing
import Towpath

@Suite(
    "A TLS connection to OpenSSL's server", .enabled(if: TLSFiles.areAvailable),
    .timeLimit(.minutes(2)))
struct TLSOpenSSLServerTests {
    private func exchange(_ connection: Connection<TLS>) async throws {
        try await connection.send("hello\n".utf8)
        #expect(try await connection.receive(exactly: 6) == Array("olleh\n".utf8))
    }

    /// Opens and reads until it fails.
    private func failure(_ connection: Connection<TLS>) async -> NetworkError? {
        await Streams.failure {
            try await connection.start()
            return try await connection.receive()
        }
    }

    @Test(
        "the server is verified, a line comes back, and the end is an orderly one",
        arguments: TLSVersion.all)
    func exchanges(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let server = try await OpenSSLServer(files, version.option)
        let connection = server.client(TLS().trust(anchors: try files.certificates("root")))
        try await exchange(connection)
        let peer = try #require(connection.tlsPeer)
        #expect(peer.version == version)
        #expect(peer.group == "X25519")
        #expect(peer.certificates.map(\.subject) == ["CN=server", "CN=intermediate"])
        #expect(peer.verifiedChain.map(\.subject) == ["CN=server", "CN=intermediate", "CN=root"])
        // What ends the connection from the other side.
        try await connection.send("CLOSE\n".utf8)
        #expect(try await connection.receive() == nil)
    }

    @Test(
        "a session is taken up again, and not where nobody wants that",
        arguments: TLSVersion.all, [true, false])
    func resumption(version: TLSVersion, isWanted: Bool) async throws {
        let files = try await TLSFiles.get()
        let server = try await OpenSSLServer(files, version.option)
        let tls = TLS().trust(anchors: try files.certificates("root")).resumption(isWanted)
        for isFirst in [true, false, false] {
            let connection = server.client(tls)
            try await exchange(connection)
            let peer = try #require(connection.tlsPeer)
            #expect(peer.isResumed == (isWanted && !isFirst))
            #expect(peer.certificates.first?.subject == "CN=server")
            await connection.close()
        }
        // With other options, or for another name, the earlier verdict does not count.
        for other in [tls.strict(), tls.serverName("localhost")] {
            let connection = server.client(other)
            try await exchange(connection)
            #expect(connection.tlsPeer?.isResumed == false)
            await connection.close()
        }
    }

    @Test(
        "the application protocol is what the server chooses; a server without any is accepted",
        arguments: TLSVersion.all)
    func applicationProtocol(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let tls = TLS().trust(anchors: try files.certificates("root"))
            .applicationProtocols("one", "two")
        let server = try await OpenSSLServer(files, "\(version.option) -alpn two,three")
        let connection = server.client(tls)
        try await exchange(connection)
        #expect(connection.tlsPeer?.applicationProtocol == "two")
        let plain = try await OpenSSLServer(files, version.option)
        let other = plain.client(tls)
        try await exchange(other)
        #expect(other.tlsPeer != nil && other.tlsPeer?.applicationProtocol == nil)
    }

    @Test(
        "a certificate that does not prove the server ends the handshake, and the error says why",
        arguments: TLSVersion.all,
        [
            Refusal("expired", "root", 10, "expired"),
            Refusal("other", "root", 64, "it is for other.test"),
            Refusal("other", "root", 62, "it is for other.test", serverName: "localhost"),
            Refusal("server", "client-root", 20, "issuer"),
            Refusal("self-signed", "root", 18, "self-signed certificate"),
        ])
    func refuses(version: TLSVersion, refusal: Refusal) async throws {
        let files = try await TLSFiles.get()
        let server = try await OpenSSLServer(files, identity: refusal.identity, version.option)
        var tls = TLS().trust(anchors: try files.certificates(refusal.anchor))
        if let name = refusal.serverName { tls = tls.serverName(name) }
        let error = try #require(await failure(server.client(tls)))
        #expect(error.code == .certificateInvalid && error.stage == .tls, "\(error)")
        #expect(error.cause == .verification(code: refusal.code), "\(error)")
        #expect(error.message.contains(refusal.words), "\(error)")
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let identity: String
        let anchor: String
        let code: Int32
        let words: String
        let serverName: String?

        init(
            _ identity: String, _ anchor: String, _ code: Int32, _ words: String,
            serverName: String? = nil
        ) {
            self.identity = identity
            self.anchor = anchor
            self.code = code
            self.words = words
            self.serverName = serverName
        }

        var testDescription: String { "\(identity) by \(anchor): \(code)" }
    }

    @Test("by default the host's roots count, of which ours is none")
    func systemRoots() async throws {
        let files = try await TLSFiles.get()
        let server = try await OpenSSLServer(files)
        let error = try #require(await failure(server.client(TLS())))
        #expect(error.code == .certificateInvalid, "\(error)")
    }

    @Test("nobody is refused by a client that does not care", arguments: TLSVersion.all)
    func unverified(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let server = try await OpenSSLServer(files, identity: "self-signed", version.option)
        let connection = server.client(TLS().peerAuthentication(.none))
        try await exchange(connection)
        #expect(connection.tlsPeer?.verifiedChain.isEmpty == true)
    }

    @Test(
        "pins as the command line computes them: of the server, of an authority, of nobody here",
        arguments: TLSVersion.all)
    func pins(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let server = try await OpenSSLServer(files, version.option)
        let tls = TLS().trust(anchors: try files.certificates("root"))
        let strange = Pin.sha256(try await files.pin("client"))
        var pins: [String] = []
        for name in ["server", "intermediate", "root"] {
            let pin = try await files.pin(name)
            pins.append("sha256/\(pin)")
            #expect(try files.certificates(name).first?.pin == .sha256(pin))
            let connection = server.client(tls.pins(.sha256(pin), backup: strange))
            try await exchange(connection)
            await connection.close()
        }
        let other = Pin.sha256(try await files.pin("other"))
        let error = try #require(await failure(server.client(tls.pins(other, backup: strange))))
        #expect(error.code == .pinMismatch && error.stage == .tls, "\(error)")
        // To be copied from.
        for pin in pins { #expect(error.message.contains(pin), "\(error)") }

        let mismatches = Inbox<NetworkError>()
        var reporting = PinSet(pins: [other], backups: [strange])
        reporting.reportOnly = true
        let connection = server.client(
            tls.pins(reporting).onPinMismatch { mismatches.send($0) })
        try await exchange(connection)
        #expect(try await mismatches.next().code == .pinMismatch)
    }

    @Test(
        "a pinned key proves a server that signed its certificate itself, another does not",
        arguments: TLSVersion.all)
    func pinnedKeyOnly(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let server = try await OpenSSLServer(files, identity: "self-signed", version.option)
        let pin = Pin.sha256(try await files.pin("self-signed"))
        let connection = server.client(TLS().pinnedKeyOnly(pin))
        try await exchange(connection)
        await connection.close()
        let other = Pin.sha256(try await files.pin("server"))
        let error = await failure(server.client(TLS().pinnedKeyOnly(other)))
        #expect(error?.code == .pinMismatch, "\(String(describing: error))")

        let expired = try await OpenSSLServer(files, identity: "expired", version.option)
        let expiredPin = Pin.sha256(try await files.pin("expired"))
        let late = await failure(expired.client(TLS().pinnedKeyOnly(expiredPin)))
        #expect(late?.cause == .verification(code: 10), "\(String(describing: late))")
    }

    @Test("a server without TLS 1.3 is spoken to in TLS 1.2, unless that is not allowed")
    func older() async throws {
        let files = try await TLSFiles.get()
        let server = try await OpenSSLServer(files, "-no_tls1_3")
        let tls = TLS().trust(anchors: try files.certificates("root"))
        let connection = server.client(tls)
        try await exchange(connection)
        #expect(connection.tlsPeer?.version == .tls12)
        // It serves one at a time.
        await connection.close()
        let error = await failure(server.client(tls.version(minimum: .tls13)))
        #expect(error?.code == .refusedByPeer, "\(String(describing: error))")
        #expect(error?.cause == .alert(70))
    }

    @Test("a server that speaks nothing newer than TLS 1.1 is no server")
    func tooOld() async throws {
        let files = try await TLSFiles.get()
        let server = try await OpenSSLServer(files, "-tls1_1 -cipher DEFAULT@SECLEVEL=0")
        let error = await failure(
            server.client(TLS().trust(anchors: try files.certificates("root"))))
        #expect(error?.code == .refusedByPeer && error?.stage == .tls)
        #expect(error?.cause == .alert(70), "\(String(describing: error))")
    }
}
