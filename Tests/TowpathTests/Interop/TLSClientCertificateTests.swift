import TestSupport
import Testing
import Towpath

@Suite(
    "Certificates of clients, OpenSSL's and ours", .enabled(if: TLSFiles.areAvailable),
    .timeLimit(.minutes(2)))
struct TLSClientCertificateTests {
    private func service(
        _ files: TLSFiles, _ authentication: TLS.PeerAuthentication, _ version: TLSVersion
    ) async throws -> TLSService {
        try await TLSService(
            TLS(identity: try files.identity("server")).only(version)
                .peerAuthentication(authentication)
                .trust(anchors: try files.certificates("client-root")))
    }

    @Test(
        "one that is asked for is verified", arguments: TLSVersion.all,
        [TLS.PeerAuthentication.required, .optional])
    func shown(version: TLSVersion, authentication: TLS.PeerAuthentication) async throws {
        let files = try await TLSFiles.get()
        let service = try await service(files, authentication, version)
        try await service.answering {
            let end = try await service.openSSLClient(files, "-cert client.pem -key client.key")
            #expect(end.status == 0 && end.output.contains("\nhello\n"), "\(end)")
            #expect(end.output.contains("CN = client-root"), "\(end)")
            let peer = try await service.peers.next()
            #expect(peer.certificates.map(\.subject) == ["CN=client"])
            #expect(peer.verifiedChain.map(\.subject) == ["CN=client", "CN=client-root"])
        }
    }

    @Test("a client without one is refused where it is required", arguments: TLSVersion.all)
    func missing(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let service = try await service(files, .required, version)
        try await service.answering {
            let end = try await service.openSSLClient(files)
            #expect(end.status == 1 && end.errors.contains(" alert "), "\(end)")
            let error = try await service.handshakeFailure()
            #expect(error.code == .handshakeFailed, "\(error)")
            #expect(error.description.contains("peer did not return a certificate"), "\(error)")
        }
    }

    @Test(
        "one of a stranger is refused, also where none is required", arguments: TLSVersion.all,
        [TLS.PeerAuthentication.required, .optional])
    func strange(version: TLSVersion, authentication: TLS.PeerAuthentication) async throws {
        let files = try await TLSFiles.get()
        let service = try await service(files, authentication, version)
        try await service.answering {
            let end = try await service.openSSLClient(
                files, "-cert self-signed.pem -key self-signed.key")
            #expect(end.status == 1 && end.errors.contains("alert unknown ca"), "\(end)")
            let error = try await service.handshakeFailure()
            #expect(error.code == .certificateInvalid, "\(error)")
            #expect(error.cause == .verification(code: 18), "\(error)")
        }
    }

    @Test(
        "a client without one is served where it is optional, or not asked for",
        arguments: TLSVersion.all, [TLS.PeerAuthentication.optional, .none])
    func unneeded(version: TLSVersion, authentication: TLS.PeerAuthentication) async throws {
        let files = try await TLSFiles.get()
        let service = try await service(files, authentication, version)
        try await service.answering {
            let end = try await service.openSSLClient(files)
            #expect(end.status == 0 && end.output.contains("\nhello\n"), "\(end)")
            let peer = try await service.peers.next()
            #expect(peer.certificates.isEmpty && peer.verifiedChain.isEmpty)
        }
    }

    @Test("one that nobody asks for is not shown", arguments: TLSVersion.all)
    func unasked(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let service = try await service(files, .none, version)
        try await service.answering {
            let end = try await service.openSSLClient(files, "-cert client.pem -key client.key")
            #expect(end.output.contains("No client certificate CA names sent"), "\(end)")
            #expect(try await service.peers.next().certificates.isEmpty)
        }
    }

    @Test("a client that proved itself can take its session up again", arguments: TLSVersion.all)
    func resumed(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let service = try await service(files, .required, version)
        let options = "-cert client.pem -key client.key"
        let name = "client-session-\(version.name)"
        try await service.answering {
            _ = try await service.openSSLClient(files, "\(options) -sess_out \(name)")
            let end = try await service.openSSLClient(files, "\(options) -sess_in \(name)")
            #expect(end.output.contains("Reused, \(version.name)"), "\(end)")
            _ = try await service.peers.next()
            let peer = try await service.peers.next()
            #expect(peer.isResumed)
            #expect(peer.certificates.first?.subject == "CN=client")
        }
    }

    @Test(
        "ours is shown to a server that asks, and one that is required is missed",
        arguments: TLSVersion.all)
    func own(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let server = try await OpenSSLServer(
            files, "\(version.option) -Verify 1 -verify_return_error -CAfile client-root.pem")
        let root = try files.certificates("root")
        let connection = server.client(
            TLS(identity: try files.identity("client")).trust(anchors: root))
        try await connection.send("hello\n".utf8)
        #expect(try await connection.receive(exactly: 6) == Array("olleh\n".utf8))
        await connection.close()

        let stranger = server.client(TLS().trust(anchors: root))
        let error = await Streams.failure {
            try await stranger.start()
            // In TLS 1.3 a client is ready before the server has seen its certificate.
            return try await stranger.receive()
        }
        #expect(error?.code == .refusedByPeer, "\(String(describing: error))")
        #expect(error?.cause == .alert(version == .tls12 ? 40 : 116))
    }
}
