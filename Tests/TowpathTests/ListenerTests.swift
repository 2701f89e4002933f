import Glibc
import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("A listener and its address", .timeLimit(.minutes(1)))
struct ListenerTests {
    @Test("port 0 becomes a real port", arguments: [Endpoint.port(0), .loopback(), .loopback6()])
    func realPort(endpoint: Endpoint) async throws {
        let listener = try await Listener(on: endpoint) { TCP() }
        #expect(listener.port != 0)
        #expect(listener.localEndpoint.host == endpoint.host)
        #expect(listener.localEndpoint.port == listener.port)
        #expect(listener.connectionCount == 0)
    }

    @Test("a port alone accepts IPv4 and IPv6", arguments: [Endpoint.loopback(), .loopback6()])
    func dualStack(client: Endpoint) async throws {
        let listener = try await Listener(on: .port(0)) { TCP() }
        let host = try #require(client.host)
        let peers = Inbox<Endpoint?>()
        try await serving(listener) { connection in
            peers.send(connection.remoteEndpoint)
            try await echo(connection)
        } while: {
            let connection = Connection(to: .hostPort(host: host, port: listener.port)) { TCP() }
            try await expectEcho(of: "hello", from: connection)
            // BR-014: an IPv4 peer has its plain address.
            let peer = try await peers.next()
            #expect(peer == connection.localEndpoint)
        }
    }

    @Test("with ipv6Only IPv4 is refused")
    func ipv6Only() async throws {
        let parameters = Parameters().ipv6Only(true)
        var listener = try await Listener(on: .port(0), parameters: parameters) { TCP() }
        // Held on IPv4 without listening, so that no other test has the port.
        let holder = try PlainSocket(.ipv4)
        while (try? holder.descriptor.bind(to: .loopback(listener.port))) == nil {
            listener = try await Listener(on: .port(0), parameters: parameters) { TCP() }
        }
        try await serving(listener, echo) {
            let error = try await #require(throws: NetworkError.self) {
                try await Connection(to: .loopback(listener.port)) { TCP() }.start()
            }
            #expect(error.code == .connectionRefused)
            try await expectEcho(
                of: "v6", from: Connection(to: .loopback6(listener.port)) { TCP() })
        }
    }

    @Test("an address accepts at that address only")
    func oneAddress() async throws {
        let listener = try await Listener(on: .loopback(last: 7)) { TCP() }
        try await serving(listener, echo) {
            try await expectEcho(of: "here", from: listener.client())
            let error = try await #require(throws: NetworkError.self) {
                try await Connection(to: .loopback(listener.port, last: 8)) { TCP() }.start()
            }
            #expect(error.code == .connectionRefused)
        }
    }

    // MARK: What cannot be had

    @Test("a host name is refused")
    func hostName() async throws {
        let error = try await #require(throws: NetworkError.self) {
            _ = try await Listener(on: try Endpoint(parsing: "localhost:0")) { TCP() }
        }
        #expect(error.code == .invalidEndpoint)
        #expect(error.message.contains("localhost:0"))
        #expect(error.message.contains("not to a name"))
    }

    @Test("a zone that is no interface is named in the error")
    func unknownZone() async throws {
        let error = try await #require(throws: NetworkError.self) {
            _ = try await Listener(on: try Endpoint(parsing: "[fe80::1%nosuch0]:0")) { TCP() }
        }
        #expect(error.code == .invalidEndpoint)
        #expect(error.message.contains("nosuch0"))
        #expect(!error.message.contains("not to a name"))
    }

    @Test("a port in use is named in the error", arguments: [false, true])
    func portInUse(asUDP: Bool) async throws {
        let (tcp, udp) = (
            try await Listener(on: .loopback()) { TCP() },
            try await Listener(on: .loopback()) { UDP() }
        )
        let endpoint = asUDP ? udp.localEndpoint : tcp.localEndpoint
        let error = try await #require(throws: NetworkError.self) {
            if asUDP {
                _ = try await Listener(on: endpoint) { UDP() }
            } else {
                _ = try await Listener(on: endpoint) { TCP() }
            }
        }
        #expect(error.code == .addressUnavailable)
        #expect(error.stage == .listen)
        #expect(error.message.contains("\(endpoint)"))
        #expect(error.message.contains("in use"))
        #expect(error.cause == .system(errno: EADDRINUSE, call: "bind"))
    }

    @Test("an address of nobody here is unavailable")
    func foreignAddress() async throws {
        // TEST-NET-1, RFC 5737.
        let error = try await #require(throws: NetworkError.self) {
            _ = try await Listener(on: try Endpoint(parsing: "192.0.2.1:0")) { TCP() }
        }
        #expect(error.code == .addressUnavailable)
        #expect(error.message.contains("192.0.2.1:0"))
    }

    @Test(
        "a port of the administrator's is not permitted to others",
        .enabled(
            if: !isRoot && systemSetting("net/ipv4/ip_unprivileged_port_start") > 7,
            "only for an ordinary user"))
    func permission() async throws {
        let error = try await #require(throws: NetworkError.self) {
            _ = try await Listener(on: .loopback(7)) { TCP() }
        }
        #expect(error.code == .permissionDenied)
        #expect(error.message.contains("127.0.0.1:7"))
    }

    @Test("a listener has no local endpoint beside its own")
    func localEndpointParameter() async throws {
        let error = try await #require(throws: NetworkError.self) {
            _ = try await Listener(
                on: .loopback(), parameters: Parameters().localEndpoint(.loopback())
            ) { TCP() }
        }
        #expect(error.code == .optionFailed)
        #expect(error.message.contains("localEndpoint"))
    }

    // MARK: Its life

    @Test("clients that connect before it runs are served")
    func queued() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        let clients = (0..<3).map { _ in listener.client() }
        for client in clients { try await client.start() }
        try await serving(listener, echo) {
            for client in clients { try await expectEcho(of: "waited", from: client) }
        }
    }

    @Test("it runs once")
    func runsOnce() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        try await serving(listener, echo) {
            try await expectEcho(of: "first", from: listener.client())
            let error = try await #require(throws: NetworkError.self) {
                try await listener.run(echo)
            }
            #expect(error.code == .closed)
            try await expectEcho(of: "still first", from: listener.client())
        }
        await #expect(throws: NetworkError(.closed, .listen, "")) { try await listener.run(echo) }
    }

    @Test("closed before it runs, it is closed")
    func closedBefore() async throws {
        // An address where nobody else listens, whoever gets the port next.
        let listener = try await Listener(on: .loopback(last: 77)) { TCP() }
        listener.close()
        listener.close()
        await #expect(throws: NetworkError(.closed, .listen, "")) { try await listener.run(echo) }
        await #expect(throws: NetworkError(.connectionRefused, .connect, "")) {
            try await listener.client().start()
        }
    }

    @Test("BR-008: close() from another task ends an idle run, without an error")
    func closeWhileIdle() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        let running = Task { try await listener.run(echo) }
        try await expectEcho(of: "running", from: listener.client())
        await Task { listener.close() }.value
        try await running.end()
        _ = try PlainSocket.bound(to: .loopback(listener.port))
    }

    @Test("close() cancels the handlers, and run waits for them")
    func closeWhileServing() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        let begun = Inbox<Void>()
        let ended = Tally()
        let clients = (0..<3).map { _ in listener.client() }
        try await serving(listener) { connection in
            begun.send()
            await #expect(throws: CancellationError.self) { try await connection.receive() }
            ended.add()
            try Task.checkCancellation()
        } while: {
            for client in clients { try await client.start() }
            _ = try await begun.next(3)
        }
        #expect(ended.count == 3)
        #expect(listener.connectionCount == 0)
        for client in clients {
            await #expect(throws: NetworkError(.connectionReset, .receive, "")) {
                try await client.receive()
            }
        }
    }

    @Test("dropped without having run, it frees its port, and its clients are reset")
    func dropped() async throws {
        let port: UInt16
        let client: Connection<TCP>
        do {
            let listener = try await Listener(on: .loopback()) { TCP() }
            port = listener.port
            client = listener.client()
            try await client.start()
        }
        await #expect(throws: NetworkError(.connectionReset, .receive, "")) {
            try await client.receive()
        }
        _ = try PlainSocket.bound(to: .loopback(port))
    }
}
