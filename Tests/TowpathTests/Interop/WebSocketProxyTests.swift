import Foundation
import TestSupport
import Testing
import Towpath

/// A reverse proxy between a client and a listener of ours. Its clients reach it over Unix sockets in a
/// folder of its own: neither proxy can be told to choose a port and say which.
enum WebSocketProxy: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case nginx, haproxy

    var testDescription: String { rawValue }

    static let available: [WebSocketProxy] =
        TLSFiles.areAvailable ? allCases.filter { Program.has($0.rawValue) } : []

    private func configuration(_ folder: String, _ tls: TLSFiles, _ port: UInt16) -> String {
        switch self {
        case .nginx:
            """
            daemon off;
            master_process off;
            pid nginx.pid;
            error_log stderr notice;
            events { worker_connections 64; }
            http {
                access_log off;
                client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c;
                uwsgi_temp_path d; scgi_temp_path e;
                server {
                    listen unix:\(folder)/plain;
                    listen unix:\(folder)/secure ssl http2;
                    ssl_certificate \(tls.folder)/server.pem;
                    ssl_certificate_key \(tls.folder)/server.key;
                    location / {
                        proxy_pass http://127.0.0.1:\(port);
                        proxy_http_version 1.1;
                        proxy_set_header Upgrade $http_upgrade;
                        proxy_set_header Connection upgrade;
                        proxy_buffering off;
                    }
                }
            }
            """
        case .haproxy:
            """
            defaults
                mode http
                timeout connect 60s
                timeout client 60s
                timeout server 60s
                timeout tunnel 60s
            frontend ours
                bind unix@\(folder)/plain
                bind unix@\(folder)/secure ssl crt \(folder)/server.pem alpn h2,http/1.1
                default_backend listener
            backend listener
                server listener 127.0.0.1:\(port)
            """
        }
    }

    private var command: String {
        switch self {
        case .nginx: "exec nginx -e stderr -p . -c configuration"
        // With -W it says when it listens; its worker ends with it.
        case .haproxy: "exec haproxy -W -db -f configuration"
        }
    }

    /// Starts it before a port, and returns once it listens.
    func start(_ folder: TemporaryFolder, _ tls: TLSFiles, _ port: UInt16) async throws -> Program {
        try folder.write("\(configuration(folder.path, tls, port))\n".utf8, to: "configuration")
        try await folder.run(
            "cat '\(tls.folder)/server.pem' '\(tls.folder)/server.key' >server.pem")
        let program = try Program(shell: "cd '\(folder.path)' && \(command)")
        var said: [String] = []
        while true {
            do { said.append(try await program.errorLine()) } catch {
                throw Program.Failure(description: said.joined(separator: "\n"))
            }
            // Both say this behind bind(2) and listen(2).
            let signs = ["Loading success", "getrlimit"]
            if signs.contains(where: { said.last?.contains($0) == true }) { return program }
        }
    }
}

@Suite(
    "A WebSocket listener behind a reverse proxy", .enabled(if: !WebSocketProxy.available.isEmpty),
    .timeLimit(.minutes(2)))
struct WebSocketProxyTests {
    /// A listener that echoes, a proxy before it, and a client of the proxy.
    private func bridged(
        _ proxy: WebSocketProxy, _ isSecure: Bool, ends: Inbox<WebSocketEnd> = Inbox(),
        _ body: (Connection<WebSocket>) async throws -> Void
    ) async throws {
        let files = try await TLSFiles.get()
        let folder = try TemporaryFolder()
        let listener = try await Listener(on: .loopback()) { WebSocket { TCP() } }
        let program = try await proxy.start(folder, files, listener.port)
        let roots = try files.certificates("root")
        try await WebSocketSamples.echoing(listener, ends: ends) {
            let connection =
                if isSecure {
                    Connection(to: .unix(folder.path("secure"))) {
                        WebSocket(path: "/echo?through=\(proxy)") {
                            TLS().trust(anchors: roots).serverName("localhost")
                        }
                    }
                } else {
                    Connection(to: .unix(folder.path("plain"))) {
                        WebSocket(path: "/echo?through=\(proxy)") { TCP() }
                    }
                }
            try await body(connection)
            await connection.close()
        }
        withExtendedLifetime(program) {}
    }

    @Test(
        "messages of every length come back, and pings", arguments: WebSocketProxy.available,
        [false, true])
    func echoes(proxy: WebSocketProxy, isSecure: Bool) async throws {
        try await bridged(proxy, isSecure) { connection in
            try await WebSocketSamples.expectEchoes(from: connection)
            #expect(try await connection.ping() > .zero)
            #expect(connection.isCompressing)
        }
    }

    @Test(
        "codes and reasons arrive whole in both directions",
        arguments: WebSocketProxy.available, [false, true])
    func closes(proxy: WebSocketProxy, isSecure: Bool) async throws {
        let ends = Inbox<WebSocketEnd>()
        try await bridged(proxy, isSecure, ends: ends) { connection in
            try await connection.send(.text("hello"))
            #expect(try await connection.receive() == .text("hello"))
            try await connection.close(code: WebSocketCloseCode(rawValue: 3001), reason: "bye")
            let end = try await ends.next()
            #expect(end.code?.rawValue == 3001 && end.reason == "bye", "\(end)")
        }
        try await bridged(proxy, isSecure) { connection in
            try await connection.send(.text("close 3002 so long"))
            let error = await Streams.failure { for try await _ in connection.messages {} }
            #expect(error != nil)
            #expect(connection.closeStatus?.code.rawValue == 3002)
            #expect(connection.closeStatus?.reason == "so long")
        }
    }

    @Test(
        "a client that goes without a word is gone for the listener",
        arguments: WebSocketProxy.available)
    func aborts(proxy: WebSocketProxy) async throws {
        let ends = Inbox<WebSocketEnd>()
        try await bridged(proxy, false, ends: ends) { connection in
            try await connection.send(.text("hello"))
            #expect(try await connection.receive() == .text("hello"))
            connection.abort()
            let end = try await ends.next()
            #expect(end.code == .abnormalClosure && end.error != nil, "\(end)")
        }
    }
}
