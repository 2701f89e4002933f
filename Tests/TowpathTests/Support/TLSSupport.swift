import Foundation
import TestSupport
import Testing
import Towpath

/// A peer of another make: `openssl s_server`, which sends each line back from its end to its beginning.
struct OpenSSLServer {
    let program: Program
    let endpoint: Endpoint

    /// - Parameter options: Those of `openssl s_server`, with names of files as `TLSFiles` has them.
    init(_ files: TLSFiles, identity: String = "server", _ options: String = "") async throws {
        // The certificate's own file has the chain, of which -cert takes the first only.
        program = try files.start(
            "exec openssl s_server -accept 127.0.0.1:0 -cert \(identity).pem"
                + " -key \(identity).key -cert_chain intermediate.pem -rev \(options)")
        while true {
            let line = try await program.line()
            guard line.hasPrefix("ACCEPT ") else { continue }
            guard let port = line.split(separator: ":").last.flatMap({ UInt16($0) }) else {
                throw Program.Failure(description: "no port in \(line)")
            }
            endpoint = .loopback(port)
            break
        }
    }

    func client(_ tls: TLS) -> Connection<TLS> { Connection(to: endpoint) { tls } }
}

extension TLSVersion {
    /// The option of `openssl s_client` and `s_server` for this version alone.
    var option: String { self == .tls12 ? "-tls1_2" : "-tls1_3" }

    /// Their name for it.
    var name: String { self == .tls12 ? "TLSv1.2" : "TLSv1.3" }

    static let all: [TLSVersion] = [.tls12, .tls13]
}

extension TLS {
    /// Of this version alone.
    func only(_ version: TLSVersion) -> TLS { self.version(minimum: version, maximum: version) }
}

/// A listener with TLS, and what it told.
struct TLSService {
    let listener: Listener<TLS>
    let peers = Inbox<TLSPeer>()
    let events = Inbox<ListenerEvent>()

    init(_ tls: TLS) async throws {
        listener = try await Listener(on: .loopback()) { tls }
        listener.onEvent { [events] in events.send($0) }
    }

    var address: String { "\(listener.localEndpoint)" }

    /// Answers each client's first line with the same while the body runs, and tells of it.
    func answering<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        try await serving(listener) { [peers] connection in
            if let peer = connection.tlsPeer { peers.send(peer) }
            try await connection.send(
                try await connection.receive(until: "\n".utf8, limit: 10_000))
        } while: {
            try await body()
        }
    }

    /// Sends everything back while the body runs.
    func echoing<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        try await serving(listener) { connection in
            for try await chunk in connection.chunks { try await connection.send(chunk) }
        } while: {
            try await body()
        }
    }

    /// The error of the next handshake that failed.
    func handshakeFailure() async throws -> NetworkError {
        let event = try await events.next()
        guard case .handshakeFailed(let error, _) = event else {
            throw Program.Failure(description: "another event: \(event)")
        }
        return error
    }

    /// Runs `openssl s_client`, which sends a line and waits until the connection ends.
    func openSSLClient(_ files: TLSFiles, _ options: String = "") async throws -> Program.End {
        try await files.run(
            "echo hello | openssl s_client -connect \(address) -CAfile root.pem"
                + " -verify_return_error -ign_eof \(options)")
    }
}
