import Foundation
import TestSupport
import Testing
import Towpath

@Suite(
    "echo-listener --tls, as its users meet it",
    .enabled(if: Tool.isAvailable && TLSFiles.areAvailable), .timeLimit(.minutes(2)))
struct TLSEchoListenerTests {
    @Test(
        "a wrong command line ends with status 2 and one clear line",
        arguments: [
            ("--tls", "--tls needs a value"), ("--tls 70000", "port 70000 is out of range"),
            ("--tls 0", "--tls and --wss need --cert and --key, or --self-signed"),
            ("--tls 0 --cert a", "--tls and --wss need --cert and --key"),
            ("--tls 0 --key a", "--tls and --wss need --cert and --key"),
            ("--tls 0 --self-signed --cert a", "or --self-signed"),
            ("--tls 0 --self-signed --cert a --key b", "or --self-signed"),
            ("--tls 0 --cert", "--cert needs a value"), ("--tls 0 --key", "--key needs a value"),
            ("--tcp 0 --self-signed", "are for --tls"),
            ("--tcp 0 --cert a --key b", "are for --tls"),
        ])
    func usage(arguments: String, complaint: String) async throws {
        try await Tool.expectUsageError("exec $ECHO \(arguments)", complaint)
    }

    @Test(
        "a certificate or key that cannot be used ends with status 1 and names the file",
        arguments: [
            ("missing.pem", "server.key", "missing.pem"),
            ("server.pem", "missing.key", "missing.key"), ("server.pem", "other.key", "other.key"),
            ("server.key", "server.key", "server.key"), ("server.pem", "root.pem", "root.pem"),
        ])
    func wrongFiles(certificate: String, key: String, named: String) async throws {
        let folder = try await TLSFiles.get().folder
        let end = try await Tool.run(
            "exec $ECHO --tls 127.0.0.1:0 --cert \(folder)/\(certificate) --key \(folder)/\(key)")
        #expect(end.status == 1)
        #expect(end.output.isEmpty, "\(end)")
        #expect(end.errors.contains("\(folder)/\(named): "), "\(end)")
        #expect(end.errors.split(separator: "\n").count == 1, "\(end)")
    }

    @Test("--self-signed prints the pin that openssl and curl compute, and echoes over TLS")
    func selfSigned() async throws {
        let files = try await TLSFiles.get()
        let server = try Tool.start("exec $ECHO --tls 127.0.0.1:0 --self-signed")
        let address = try await boundAddress(server)
        let pin = try await server.line()
        let shown = try await files.run(
            "openssl s_client -connect \(address) </dev/null | openssl x509 -pubkey -noout"
                + " | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64")
        #expect(pin == "pin sha256/\(shown.output.dropLast())", "\(shown)")

        // Pinned, it is a server like any other.
        let connection = Connection(to: try Endpoint(parsing: address)) {
            TLS().pinnedKeyOnly((try? Pin(parsing: String(pin.dropFirst(4)))) ?? .sha256(""))
        }
        try await connection.send("hello".utf8)
        #expect(try await connection.receive(exactly: 5) == Array("hello".utf8))
        await connection.close()
        server.signal(SIGTERM)
        let end = try await server.end()
        #expect(end.status == 0 && end.output.isEmpty, "\(end)")
    }

    @Test("--cert and --key: s_client verifies the chain and gets everything back")
    func files() async throws {
        let files = try await TLSFiles.get()
        let server = try start(files)
        let address = try await boundAddress(server)
        for version in TLSVersion.all {
            let client = try files.start(
                "echo hello | openssl s_client -connect \(address) -CAfile root.pem -quiet"
                    + " -verify_return_error \(version.option)")
            #expect(try await client.line() == "hello")
        }
        server.signal(SIGTERM)
        #expect(try await server.end().status == 0)
    }

    @Test("SIGTERM ends an idle client with a closing alert")
    func drains() async throws {
        let files = try await TLSFiles.get()
        let server = try start(files)
        let address = try await boundAddress(server)
        let client = try files.start(
            "echo hello | openssl s_client -connect \(address) -CAfile root.pem -quiet")
        #expect(try await client.line() == "hello")
        server.signal(SIGTERM)
        let end = try await client.end()
        #expect(end.status == 0 && !end.errors.contains("unexpected eof"), "\(end)")
        #expect(try await server.end().status == 0)
    }

    @Test("plain text on the TLS port is told as such, and others are served")
    func plain() async throws {
        let files = try await TLSFiles.get()
        let server = try start(files)
        let address = try await boundAddress(server)
        let plain = try await Tool.run(
            "exec 3<>/dev/tcp/\(address.replacing(":", with: "/"));"
                + " printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3 | wc -c")
        // An alert at most.
        #expect((Int(plain.output.trimmingPrefix(" ").dropLast()) ?? 99) <= 7, "\(plain)")
        let note = try await server.errorLine()
        #expect(note.contains("no handshake with 127.0.0.1:"), "\(note)")
        #expect(note.contains("the peer does not speak TLS"), "\(note)")
        let client = try files.start(
            "echo hello | openssl s_client -connect \(address) -CAfile root.pem -quiet")
        #expect(try await client.line() == "hello")
        server.signal(SIGTERM)
        #expect(try await server.end().status == 0)
    }

    @Test("TLS beside the other transports")
    func beside() async throws {
        let server = try Tool.start(
            "exec $ECHO --tcp 127.0.0.1:0 --tls 127.0.0.1:0 --tls '[::1]:0' --self-signed")
        let line = try await server.line()
        #expect(line.hasPrefix("listening on tcp 127.0.0.1:"), "\(line)")
        #expect(try await boundAddress(server).hasPrefix("127.0.0.1:"))
        #expect(try await boundAddress(server).hasPrefix("[::1]:"))
        #expect(try await server.line().hasPrefix("pin sha256/"))
        server.signal(SIGTERM)
        #expect(try await server.end().status == 0)
    }

    private func start(_ files: TLSFiles) throws -> Program {
        try Tool.start(
            "exec $ECHO --tls 127.0.0.1:0 --cert \(files.folder)/server.pem"
                + " --key \(files.folder)/server.key")
    }

    private func boundAddress(_ server: Program) async throws -> String {
        let line = try await server.line()
        let prefix = "listening on tls "
        guard line.hasPrefix(prefix) else {
            throw Program.Failure(description: "not an address: \(line)")
        }
        return String(line.dropFirst(prefix.count))
    }
}
