import Glibc
import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("The options of addresses and names", .timeLimit(.minutes(1)))
struct OptionsEndpointTests {
    // MARK: The client's own address

    @Test("what only the other side has is refused, and named")
    func ofTheOtherSide() async throws {
        let resolved = Parameters().resolve("a.example", to: [])
        for (name, parameters) in [
            ("resolve", resolved), ("ipv6Only", Parameters().ipv6Only(true)),
            ("interface", Parameters().requiredInterface("a-name-too-long1")),
        ] {
            let error = try await #require(throws: NetworkError.self) {
                _ = try await Listener(on: .loopback(), parameters: parameters) { TCP() }
            }
            #expect(error.code == .optionFailed)
            #expect(error.message.contains(name))
        }
        let backlog = Parameters().backlog(5)
        let listener = try await Listener(on: .loopback()) { TCP() }
        let ends: [() async throws -> Void] = [
            { try await listener.client(parameters: backlog).start() },
            { _ = try await Listener(on: .loopback(), parameters: backlog) { UDP() } },
        ]
        for end in ends {
            let error = try await #require(throws: NetworkError.self) { try await end() }
            #expect(error.code == .optionFailed)
            #expect(error.message.contains("backlog"))
        }
    }

    @Test("a client comes from the local endpoint that it was given")
    func localAddress() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        let peers = Inbox<Endpoint?>()
        try await serving(listener) { connection in
            peers.send(connection.remoteEndpoint)
            try await echo(connection)
        } while: {
            let parameters = Parameters().localEndpoint(.loopback(last: 2))
            let client = listener.client(parameters: parameters)
            try await expectEcho(of: "from 127.0.0.2", from: client)
            let peer = try await peers.next()
            #expect(peer?.host == .ipv4(IPv4Address(127, 0, 0, 2)))
            #expect(peer == client.localEndpoint)
        }
    }

    @Test("and from the port")
    func localPort() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        // A port that was free a moment ago, of an address that no other test uses.
        let port = try PlainSocket.bound(to: SocketAddress(ipv4: 0x7F00_0305, port: 0)).port
        let own = Endpoint.hostPort(host: .ipv4(IPv4Address(127, 0, 3, 5)), port: port)
        let peers = Inbox<Endpoint?>()
        try await serving(listener) {
            peers.send($0.remoteEndpoint)
        } while: {
            let client = listener.client(parameters: Parameters().localEndpoint(own))
            try await client.start()
            let peer = try await peers.next()
            #expect(peer == own)
        }
    }

    @Test("many clients share one local address with port 0")
    func sharedLocalAddress() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        try await serving(listener, echo) {
            let parameters = Parameters().localEndpoint(.loopback(last: 2))
            let clients = (0..<20).map { _ in listener.client(parameters: parameters) }
            for client in clients { try await expectEcho(of: "shared", from: client) }
        }
    }

    @Test("a local endpoint that cannot be is named in the error")
    func wrongLocalEndpoint() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        let wrong: [(Endpoint, NetworkError.Code)] = [
            (try Endpoint(parsing: "192.0.2.1:0"), .addressUnavailable),
            (listener.localEndpoint, .addressUnavailable),
            (.loopback6(), .systemFailure), (try Endpoint(parsing: "name:0"), .systemFailure),
        ]
        for (endpoint, code) in wrong {
            let error = try await #require(throws: NetworkError.self) {
                try await listener.client(parameters: Parameters().localEndpoint(endpoint)).start()
            }
            #expect(error.code == code)
            #expect(error.message.contains("\(endpoint)"))
        }
    }

    // MARK: The listener's address

    /// A port whose last connection was ended by the server: it lingers in TIME-WAIT.
    private func lingeringPort(_ parameters: Parameters) async throws -> UInt16 {
        let listener = try await Listener(on: .loopback(), parameters: parameters) { TCP() }
        try await serving(listener) {
            try await $0.send("bye".utf8)
        } while: {
            let client = listener.client()
            let bye = try await client.receive()
            #expect(bye == Array("bye".utf8))
            let end = try await client.receive()
            #expect(end == nil)
            await client.close()
        }
        return listener.port
    }

    @Test("a listener binds a port on which old connections linger, unless told otherwise")
    func addressReuse() async throws {
        let port = try await lingeringPort(Parameters())
        let strict = Parameters().addressReuse(false)
        await #expect(throws: NetworkError(.addressUnavailable, .listen, "")) {
            _ = try await Listener(on: .loopback(port), parameters: strict) { TCP() }
        }
        _ = try await Listener(on: .loopback(port)) { TCP() }
    }

    @Test("two listeners share a port if both say so", arguments: [false, true])
    func portReuse(asUDP: Bool) async throws {
        let shared = Parameters().portReuse(true)
        if asUDP {
            let one = try await Listener(on: .loopback(), parameters: shared) { UDP() }
            let other = try await Listener(on: one.localEndpoint, parameters: shared) { UDP() }
            #expect(one.port == other.port)
        } else {
            let one = try await Listener(on: .loopback(), parameters: shared) { TCP() }
            let other = try await Listener(on: one.localEndpoint, parameters: shared) { TCP() }
            try await serving(one, echo) {
                try await serving(other, echo) {
                    for _ in 0..<8 { try await expectEcho(of: "shared", from: one.client()) }
                }
            }
        }
    }

    @Test("one of them alone does not", arguments: [true, false])
    func portReuseOfOne(first: Bool) async throws {
        let one = try await Listener(
            on: .loopback(), parameters: Parameters().portReuse(first)
        ) { TCP() }
        await #expect(throws: NetworkError(.addressUnavailable, .listen, "")) {
            _ = try await Listener(
                on: one.localEndpoint, parameters: Parameters().portReuse(!first)
            ) { TCP() }
        }
    }

    @Test("IPv6 alone leaves the port to IPv4; both families do not")
    func ipv6Only() async throws {
        // Another suite may take the port for IPv4 in between: then there is another try.
        var isShared = false
        for _ in 0..<20 where !isShared {
            let six = try await Listener(on: .port(0), parameters: Parameters().ipv6Only(true)) {
                TCP()
            }
            let four = Endpoint.hostPort(host: .ipv4(.any), port: six.port)
            isShared = (try? await Listener(on: four) { TCP() }) != nil
        }
        #expect(isShared)
        let both = try await Listener(on: .port(0)) { TCP() }
        await #expect(throws: NetworkError(.addressUnavailable, .listen, "")) {
            _ = try await Listener(on: .hostPort(host: .ipv4(.any), port: both.port)) { TCP() }
        }
    }

    @Test("an IP version that a listener's address does not have fails")
    func ipVersionOfListener() async throws {
        let error = try await #require(throws: NetworkError.self) {
            _ = try await Listener(on: .port(0), parameters: Parameters().ipVersion(.ipv4)) {
                TCP()
            }
        }
        #expect(error.code == .optionFailed)
        #expect(error.message.contains("ipVersion"))
        _ = try await Listener(on: .loopback(), parameters: Parameters().ipVersion(.ipv4)) { TCP() }
        // Both families are not one.
        let six = try await Listener(
            on: .port(0), parameters: Parameters().ipVersion(.ipv6)
        ) { TCP() }
        await #expect(throws: NetworkError(.connectionRefused, .connect, "")) {
            try await six.client().start()
        }
    }

    @Test("the backlog bounds how many wait to be accepted", arguments: [-1, 0, 1, 5])
    func backlog(count: Int) async throws {
        let listener = try await Listener(
            on: .ownName("backlog"), parameters: Parameters().backlog(count)
        ) { TCP() }
        let address = try listener.localEndpoint.abstractAddress
        var waiting: [PlainSocket] = []
        while waiting.count < 100 {
            let socket = try PlainSocket(.unix)
            guard socket.descriptor.connect(to: address) == .done(0) else { break }
            waiting.append(socket)
        }
        // listen(2) lets one more in; less than one is one.
        #expect(waiting.count == max(count, 1) + 1)
    }

    // MARK: Names

    @Test("a name's addresses are those given by hand, in upper and lower case")
    func resolve() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        let parameters = Parameters().resolve("Server.TEST", to: [.v4(.loopback)])
        try await serving(listener, echo) {
            for name in ["server.test", "SERVER.test", "server.test."] {
                let client = Connection(to: "\(name):\(listener.port)", parameters: parameters) {
                    TCP()
                }
                try await expectEcho(of: name, from: client)
                let report = try #require(client.establishmentReport)
                #expect(report.resolutions.map(\.source) == [.parameters])
                #expect(report.attempts.map(\.endpoint) == [listener.localEndpoint])
            }
        }
    }

    @Test("no addresses given by hand make the name unknown")
    func resolveToNothing() async throws {
        let error = try await #require(throws: NetworkError.self) {
            try await Connection(
                to: "localhost:9", parameters: Parameters().resolve("localhost", to: [])
            ) { TCP() }.start()
        }
        #expect(error.code == .nameNotFound)
        #expect(error.message.contains("localhost"))
    }

    @Test(
        "an IP version keeps to its addresses",
        arguments: [AddressFamily.ipv4, .ipv6, nil])
    func ipVersion(family: AddressFamily?) async throws {
        let listener = try await Listener(on: .port(0)) { TCP() }
        let parameters = Parameters().ipVersion(family)
            .resolve("server.test", to: [.v6(.loopback), .v4(.loopback)])
        try await serving(listener, echo) {
            let client = Connection(to: "server.test:\(listener.port)", parameters: parameters) {
                TCP()
            }
            try await expectEcho(of: "version", from: client)
            #expect(client.remoteEndpoint?.host?.address?.family == family ?? .ipv6)
        }
    }

    @Test("an IP version for which a name has no address fails")
    func ipVersionWithoutAddress() async throws {
        let parameters = Parameters().ipVersion(.ipv6).resolve("four.test", to: [.v4(.loopback)])
        for text in ["four.test:9", "127.0.0.1:9"] {
            let error = try await #require(throws: NetworkError.self) {
                try await Connection(to: text, parameters: parameters) { TCP() }.start()
            }
            #expect(error.code == .nameNotFound)
            #expect(error.message.contains("no address of a family that is allowed"))
        }
    }

    // MARK: Timeout

    @Test("the connection timeout ends attempts that nobody answers, and lists them")
    func connectionTimeout() async throws {
        // A queue with room for one, full: the kernel drops every further SYN.
        let first = try PlainSocket.bound(to: SocketAddress(ipv4: 0x7F00_0401, port: 0), backlog: 0)
        let port = try first.port
        let second = try PlainSocket.bound(
            to: SocketAddress(ipv4: 0x7F00_0402, port: port), backlog: 0)
        let fillers = try [first, second].map { socket in
            let filler = try PlainSocket(.ipv4)
            _ = filler.descriptor.connect(to: try socket.descriptor.localAddress())
            #expect(filler.isReady(for: POLLOUT))
            return filler
        }
        let addresses = [1, 2].map { IPAddress.v4(IPv4Address(127, 0, 4, $0)) }
        let connection = Connection(
            to: "slow.test:\(port)", parameters: Parameters().resolve("slow.test", to: addresses)
        ) { TCP().connectionTimeout(.milliseconds(400)) }
        let error = try await #require(throws: NetworkError.self) { try await connection.start() }
        #expect(error.code == .timedOut)
        #expect(error.stage == .connect)
        #expect(error.message.contains("slow.test"))
        // The second one is tried 250 ms after the first (RFC 8305), if the host is not too slow.
        let attempts = try #require(connection.establishmentReport).attempts
        #expect(!attempts.isEmpty)
        for attempt in attempts {
            #expect(error.message.contains("\(attempt.endpoint): no answer"))
        }
        withExtendedLifetime(fillers) {}
    }
}
