import TestSupport
import Testing
import Towpath

@Suite(
    "A TLS listener, as curl meets it", .enabled(if: TLSFiles.areAvailable && Program.has("curl")),
    .timeLimit(.minutes(2)))
struct TLSCurlTests {
    private static let versions = ["--tlsv1.2 --tls-max 1.2", "--tlsv1.3"]

    /// Answers every request with "ok" while the body runs, which gets a function that runs curl.
    private func answering(
        _ configure: (TLS) -> TLS = { $0 },
        _ body: (TLSFiles, TLSService, (String) async throws -> Program.End) async throws -> Void
    ) async throws {
        let files = try await TLSFiles.get()
        let service = try await TLSService(configure(TLS(identity: try files.identity("server"))))
        try await serving(service.listener) { connection in
            _ = try await connection.receive(until: "\r\n\r\n".utf8, limit: 10_000)
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8)
        } while: {
            try await body(files, service) { options in
                let address = "https://localhost:\(service.listener.port)/"
                return try await files.run(
                    "exec curl --noproxy '*' -sS -4 --max-time 60 \(options) \(address)")
            }
        }
    }

    @Test("the answer comes, to a name and to an address", arguments: versions)
    func answers(version: String) async throws {
        try await answering { _, service, curl in
            let name = try await curl("--cacert root.pem \(version)")
            #expect(name.status == 0 && name.output == "ok", "\(name)")
            let both = try await curl(
                "--cacert root.pem \(version) https://\(service.address)/")
            #expect(both.status == 0 && both.output == "okok", "\(both)")
        }
    }

    @Test("without our root curl refuses, and the listener is told why", arguments: versions)
    func unknown(version: String) async throws {
        try await answering { _, service, curl in
            let end = try await curl(version)
            #expect(end.status == 60, "\(end)")
            let error = try await service.handshakeFailure()
            #expect(error.code == .refusedByPeer && error.cause == .alert(48), "\(error)")
        }
    }

    @Test("the pin that we compute is curl's, and a wrong one is refused", arguments: versions)
    func pins(version: String) async throws {
        try await answering { files, _, curl in
            let pins = try ["server", "other"].map {
                "sha256//\(try files.identity($0).pin.description.dropFirst("sha256/".count))"
            }
            let right = try await curl(
                "--cacert root.pem \(version) --pinnedpubkey '\(pins[0])'")
            #expect(right.status == 0 && right.output == "ok", "\(right)")
            let wrong = try await curl(
                "--cacert root.pem \(version) --pinnedpubkey '\(pins[1])'")
            #expect(wrong.status == 90 && wrong.output.isEmpty, "\(wrong)")
            let either = try await curl(
                "--cacert root.pem \(version) --pinnedpubkey '\(pins.joined(separator: ";"))'")
            #expect(either.status == 0 && either.output == "ok", "\(either)")
            let own = try Pin.parsing(list: pins.joined(separator: ";"))
            #expect(own.map { "sha256//\($0.description.dropFirst(7))" } == pins)
        }
    }

    @Test("curl's application protocols: the one in common, and none", arguments: versions)
    func applicationProtocols(version: String) async throws {
        try await answering({ $0.applicationProtocols("http/1.1") }) { _, _, curl in
            let end = try await curl("-v --http1.1 --cacert root.pem \(version)")
            #expect(end.output == "ok", "\(end)")
            #expect(end.errors.contains("ALPN: server accepted http/1.1"), "\(end)")
        }
        try await answering { _, _, curl in
            let end = try await curl("-v --http1.1 --cacert root.pem \(version)")
            #expect(end.output == "ok", "\(end)")
            #expect(end.errors.contains("server did not agree on a protocol"), "\(end)")
        }
    }
}
