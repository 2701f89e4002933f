import Foundation
import TestSupport
import Testing
import Towpath

@Suite(
    "A TLS listener, as OpenSSL's client meets it", .enabled(if: TLSFiles.areAvailable),
    .timeLimit(.minutes(2)))
struct TLSOpenSSLClientTests {
    @Test(
        "the certificate is verified, a line comes back, and the end is an orderly one",
        arguments: TLSVersion.all)
    func echoes(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let service = try await TLSService(TLS(identity: try files.identity("server")))
        try await service.answering {
            let end = try await service.openSSLClient(
                files, "-servername localhost -verify_hostname localhost \(version.option)")
            #expect(end.status == 0, "\(end)")
            #expect(end.output.contains("Verify return code: 0 (ok)"), "\(end)")
            #expect(end.output.contains("\nhello\n"), "\(end)")
            #expect(end.output.contains("New, \(version.name), Cipher is "), "\(end)")
            #expect(!end.errors.contains("unexpected eof"), "\(end)")
            let peer = try await service.peers.next()
            #expect(peer.version == version)
            #expect(peer.serverName == "localhost")
            #expect(peer.group == "X25519")
            #expect(end.output.contains("Cipher is \(peer.cipherSuite)"), "\(end)")
            #expect(!peer.isResumed && peer.certificates.isEmpty && peer.verifiedChain.isEmpty)
        }
    }

    @Test("an address is proved too, and another host is not", arguments: TLSVersion.all)
    func names(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let service = try await TLSService(TLS(identity: try files.identity("server")))
        try await service.answering {
            let right = try await service.openSSLClient(
                files, "-verify_ip 127.0.0.1 \(version.option)")
            #expect(right.status == 0 && right.output.contains("\nhello\n"), "\(right)")
            let wrong = try await service.openSSLClient(
                files, "-verify_hostname other.test \(version.option)")
            #expect(wrong.status == 1, "\(wrong)")
            let error = try await service.handshakeFailure()
            #expect(error.code == .refusedByPeer && error.cause == .alert(42), "\(error)")
        }
    }

    @Test("a listener of one version refuses clients of the other", arguments: TLSVersion.all)
    func versions(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let other: TLSVersion = version == .tls12 ? .tls13 : .tls12
        let service = try await TLSService(
            TLS(identity: try files.identity("server")).only(version))
        try await service.answering {
            let end = try await service.openSSLClient(files, other.option)
            #expect(end.status == 1 && end.errors.contains("alert protocol version"), "\(end)")
            let error = try await service.handshakeFailure()
            #expect(error.code == .handshakeFailed, "\(error)")
            #expect(try await service.openSSLClient(files, version.option).status == 0)
        }
    }

    @Test(
        "neither older versions, nor suites without forward secrecy or authenticated encryption",
        arguments: [
            "-tls1 -cipher DEFAULT@SECLEVEL=0", "-tls1_1 -cipher DEFAULT@SECLEVEL=0",
            "-tls1_2 -cipher AES256-GCM-SHA384", "-tls1_2 -cipher ECDHE-ECDSA-AES256-SHA384",
            "-tls1_2 -cipher DHE-RSA-AES256-GCM-SHA384",
        ])
    func refusesOld(options: String) async throws {
        let files = try await TLSFiles.get()
        let service = try await TLSService(TLS(identity: try files.identity("server")))
        try await service.answering {
            let end = try await service.openSSLClient(files, options)
            #expect(end.status == 1 && end.errors.contains(" alert "), "\(end)")
            let error = try await service.handshakeFailure()
            #expect(error.code == .handshakeFailed && error.stage == .tls, "\(error)")
        }
    }

    @Test(
        "the application protocol is the first of the listener's that the client offers",
        arguments: TLSVersion.all)
    func applicationProtocol(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let service = try await TLSService(
            TLS(identity: try files.identity("server")).applicationProtocols("one", "two"))
        try await service.answering {
            let both = try await service.openSSLClient(files, "-alpn two,one \(version.option)")
            #expect(both.output.contains("ALPN protocol: one"), "\(both)")
            #expect(try await service.peers.next().applicationProtocol == "one")
            let second = try await service.openSSLClient(files, "-alpn three,two \(version.option)")
            #expect(second.output.contains("ALPN protocol: two"), "\(second)")
            #expect(try await service.peers.next().applicationProtocol == "two")
            let none = try await service.openSSLClient(files, version.option)
            #expect(none.status == 0 && none.output.contains("No ALPN negotiated"), "\(none)")
            #expect(try await service.peers.next().applicationProtocol == nil)
            let other = try await service.openSSLClient(files, "-alpn three \(version.option)")
            #expect(other.status == 1, "\(other)")
            #expect(other.errors.contains("alert no application protocol"), "\(other)")
            let error = try await service.handshakeFailure()
            #expect(error.code == .handshakeFailed, "\(error)")
            #expect(error.message.contains("offers none of the application protocols"), "\(error)")
        }
    }

    @Test(
        "the name that a client asks for chooses the identity, the first for others",
        arguments: [
            ("-servername other.test", "other"), ("-servername OTHER.test", "other"),
            ("-servername localhost", "server"), ("-servername nobody.test", "server"),
            ("-noservername", "server"),
        ])
    func serverNames(option: String, subject: String) async throws {
        let files = try await TLSFiles.get()
        let service = try await TLSService(
            TLS(identities: [try files.identity("server"), try files.identity("other")]))
        try await service.answering {
            for version in TLSVersion.all {
                let end = try await service.openSSLClient(files, "\(option) \(version.option)")
                #expect(end.status == 0, "\(end)")
                #expect(end.output.contains("\nsubject=CN = \(subject)\n"), "\(end)")
            }
        }
    }

    @Test(
        "a session is taken up again with its ticket, and not where there are none",
        arguments: TLSVersion.all, [true, false])
    func resumption(version: TLSVersion, isWanted: Bool) async throws {
        let files = try await TLSFiles.get()
        let service = try await TLSService(
            TLS(identity: try files.identity("server")).resumption(isWanted))
        let name = "session-\(version.name)-\(isWanted)"
        try await service.answering {
            let first = try await service.openSSLClient(
                files, "\(version.option) -sess_out \(name)")
            #expect(first.output.contains("New, \(version.name)"), "\(first)")
            #expect(try await service.peers.next().isResumed == false)
            // Without a ticket there is nothing to write, and sessions by number are not kept.
            if !isWanted {
                #expect(!first.output.contains("TLS session ticket"), "\(first)")
                #expect(!FileManager.default.fileExists(atPath: "\(files.folder)/\(name)"))
                return
            }
            let second = try await service.openSSLClient(
                files, "\(version.option) -sess_in \(name)")
            #expect(second.output.contains("Reused, \(version.name)"), "\(second)")
            #expect(second.output.contains("\nhello\n"), "\(second)")
            #expect(try await service.peers.next().isResumed)
        }
    }

    @Test("a client's wish for a new negotiation is refused")
    func renegotiation() async throws {
        let files = try await TLSFiles.get()
        let service = try await TLSService(TLS(identity: try files.identity("server")))
        try await service.answering {
            // Without -ign_eof, a line that begins with R asks for it.
            let end = try await files.run(
                "echo R | openssl s_client -connect \(service.address) -tls1_2")
            #expect(end.errors.contains("RENEGOTIATING"), "\(end)")
            #expect(end.errors.contains("no renegotiation"), "\(end)")
        }
    }
}
