import Glibc
import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("A listener on a socket that something else made", .timeLimit(.minutes(1)))
struct ListenerAdoptTests {
    @Test("a Unix datagram socket is refused, as it is when it is to be bound")
    func unixDatagrams() async throws {
        let (near, far) = try Descriptor.pair(.datagram)
        let peer = PlainSocket(owning: far)
        let error = try await #require(throws: NetworkError.self) {
            _ = try await Listener(adopting: near) { UDP() }
        }
        #expect(error.code == .notSupported)
        withExtendedLifetime(peer) {}
    }

    @Test("a listening TCP socket is served, blocking or not")
    func tcp() async throws {
        let socket = try PlainSocket.bound(to: .loopback())
        let number = try socket.duplicate()
        // As a service manager makes it.
        _ = fcntl(number, F_SETFL, fcntl(number, F_GETFL) & ~O_NONBLOCK)
        _ = fcntl(number, F_SETFD, 0)
        let listener = try await Listener(adopting: number) { TCP() }
        #expect(fcntl(number, F_GETFL) & O_NONBLOCK != 0)
        #expect(fcntl(number, F_GETFD) == FD_CLOEXEC)
        #expect(listener.localEndpoint == .loopback(try socket.port))
        try await serving(listener, echo) {
            try await expectEcho(of: "adopted", from: listener.client())
        }
    }

    @Test("clients that connected before are served")
    func queued() async throws {
        let socket = try PlainSocket.bound(to: .loopback())
        let client = try PlainSocket.client(to: socket.port)
        #expect(client.send("early"))
        let listener = try await Listener(adopting: socket.duplicate()) { TCP() }
        let answer = try await serving(listener, echo) { client.receive() }
        #expect(answer == "early")
    }

    @Test("a listening Unix socket is served, and keeps its name")
    func unix() async throws {
        let endpoint = Endpoint.ownName("adopted")
        let socket = try PlainSocket.bound(to: endpoint.abstractAddress)
        let listener = try await Listener(adopting: socket.duplicate()) { TCP() }
        #expect(listener.localEndpoint == endpoint)
        #expect(listener.port == 0)
        try await serving(listener, echo) {
            try await expectEcho(of: "adopted", from: listener.client())
        }
    }

    @Test("a bound UDP socket is served")
    func udp() async throws {
        let socket = try PlainSocket.bound(to: .loopback(), .datagram)
        let listener = try await Listener(adopting: socket.duplicate()) { UDP() }
        try await serving(listener) { connection in
            for try await datagram in connection.messages {
                try await connection.send(datagram.bytes)
            }
        } while: {
            let client = Connection(to: listener.localEndpoint) { UDP() }
            try await client.send("adopted".utf8)
            let answer = try await client.receive()
            #expect(answer?.bytes == Array("adopted".utf8))
        }
    }

    @Test("the stack's options are applied, and accepted connections have them")
    func options() async throws {
        let socket = try PlainSocket.bound(to: .loopback())
        let idles = Inbox<Int32>()
        let listener = try await Listener(
            adopting: socket.duplicate(), parameters: Parameters().hopLimit(9)
        ) { TCP().keepalive(idle: .seconds(77)) }
        try await serving(listener) { connection in
            idles.send(try connection.value(of: .keepIdle))
        } while: {
            let client = try PlainSocket.client(to: socket.port)
            let idle = try await idles.next()
            #expect(idle == 77)
            #expect(client.receive() == "")
        }
        #expect(try socket.descriptor.get(.ipTimeToLive) == 9)
        #expect(try socket.descriptor.get(.noDelay) == 1)
    }

    @Test("an option that a bound socket cannot have any more fails")
    func lateOption() async throws {
        let socket = try PlainSocket.bound(
            to: SocketAddress(ipv6High: 0, low: 1, scope: 0, port: 0))
        let error = try await #require(throws: NetworkError.self) {
            _ = try await Listener(
                adopting: socket.duplicate(), parameters: Parameters().ipv6Only(true)
            ) { TCP() }
        }
        #expect(error.code == .optionFailed)
        #expect(error.message.contains("IPV6_V6ONLY"))
    }

    // MARK: Wrong ones

    @Test("a number that is no descriptor is refused")
    func noDescriptor() async throws {
        let error = try await #require(throws: NetworkError.self) {
            _ = try await Listener(adopting: -1) { TCP() }
        }
        #expect(error.stage == .listen)
        #expect(error.message.contains("descriptor -1"))
        #expect(error.cause == .system(errno: EBADF, call: "fcntl"))
    }

    @Test("a descriptor that is no socket is refused")
    func noSocket() async throws {
        let number = open("/dev/null", O_RDWR | O_CLOEXEC)
        let error = try await #require(throws: NetworkError.self) {
            _ = try await Listener(adopting: number) { TCP() }
        }
        #expect(error.message.contains("descriptor \(number) is no socket"))
    }

    @Test("a socket of the wrong kind is refused, and closed")
    func wrongKind() async throws {
        let listening = try PlainSocket.bound(to: .loopback())
        let datagrams = try PlainSocket.bound(to: .loopback(), .datagram)
        await expectRefusal { try await Listener(adopting: datagrams.duplicate()) { TCP() } }
        await expectRefusal { try await Listener(adopting: listening.duplicate()) { UDP() } }
        let (near, far) = try Descriptor.pair(.stream)
        let peer = Descriptor(owning: far)
        await expectRefusal { try await Listener(adopting: near) { TCP() } }
        // The other end sees that it was closed.
        let isHungUp = peer.isReady(for: POLLHUP)
        #expect(isHungUp)
    }

    private func expectRefusal<Top>(
        _ make: () async throws -> Listener<Top>, sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        let error = await #expect(throws: NetworkError.self, sourceLocation: sourceLocation) {
            _ = try await make()
        }
        #expect(error?.code == .invalidEndpoint, sourceLocation: sourceLocation)
        #expect(
            error?.message.contains("no listening socket of the stack's type") == true,
            sourceLocation: sourceLocation)
    }
}
