import Glibc
import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("Unix sockets and their names", .timeLimit(.minutes(1)))
struct UnixListenerTests {
    @Test("a path carries a stream")
    func path() async throws {
        try await withFolder { folder in
            let endpoint = Endpoint.unix("\(folder)/socket")
            let listener = try await Listener(on: endpoint) { TCP() }
            #expect(listener.localEndpoint == endpoint)
            #expect(listener.port == 0)
            try await serving(listener) { connection in
                #expect(connection.localEndpoint == endpoint)
                #expect(connection.remoteEndpoint == nil, "a client has no name")
                try await echo(connection)
            } while: {
                let client = listener.client()
                try await expectEcho(of: "by path", from: client)
                #expect(client.remoteEndpoint == endpoint)
            }
        }
    }

    @Test("an abstract name carries a stream, and leaves no file")
    func abstract() async throws {
        let endpoint = Endpoint.ownName("stream")
        let listener = try await Listener(on: endpoint) { TCP() }
        #expect(listener.localEndpoint == endpoint)
        try await serving(listener, echo) {
            try await expectEcho(of: "by name", from: listener.client())
        }
        await #expect(throws: NetworkError(.connectionRefused, .connect, "")) {
            try await listener.client().start()
        }
    }

    @Test("a text names a socket too")
    func text() async throws {
        try await withFolder { folder in
            let listener = try await Listener(on: .unix("\(folder)/socket")) { TCP() }
            try await serving(listener, echo) {
                try await expectEcho(
                    of: "by text", from: Connection(to: "unix:\(folder)/socket") { TCP() })
            }
        }
    }

    @Test("an abstract name in use is named in the error")
    func nameInUse() async throws {
        let listener = try await Listener(on: .ownName("used")) { TCP() }
        let endpoint = listener.localEndpoint
        let error = try await #require(throws: NetworkError.self) {
            _ = try await Listener(on: endpoint) { TCP() }
        }
        #expect(error.code == .addressUnavailable)
        #expect(error.message.contains("\(endpoint)"))
    }

    // MARK: The length of a name

    @Test("a name has up to 107 bytes", arguments: [false, true])
    func longest(isAbstract: Bool) async throws {
        try await withFolder { folder in
            let name = Self.name(in: isAbstract ? "own-\(getpid())" : folder, length: 107)
            let endpoint = isAbstract ? Endpoint.abstract(name) : .unix(name)
            let listener = try await Listener(on: endpoint) { TCP() }
            #expect(listener.localEndpoint == endpoint)
            try await serving(listener, echo) {
                try await expectEcho(of: "long", from: listener.client())
            }
        }
    }

    @Test(
        "a longer or an empty one is refused with the limit, by listener and client",
        arguments: [0, 108, 4_096], [false, true])
    func tooLong(length: Int, isAbstract: Bool) async throws {
        let name = length == 0 ? "" : Self.name(in: "own", length: length)
        let endpoint = isAbstract ? Endpoint.abstract(name) : .unix(name)
        let listening = try await #require(throws: NetworkError.self) {
            _ = try await Listener(on: endpoint) { TCP() }
        }
        let connecting = try await #require(throws: NetworkError.self) {
            try await Connection(to: endpoint) { TCP() }.start()
        }
        for error in [listening, connecting] {
            #expect(error.code == .invalidEndpoint)
            #expect(error.message.contains("1 to 107 bytes"))
        }
    }

    private static func name(in folder: String, length: Int) -> String {
        "\(folder)/" + String(repeating: "n", count: length - folder.utf8.count - 1)
    }

    // MARK: Clients

    @Test("a path where nobody is, is unreachable; one where nobody listens any more, refused")
    func nobody() async throws {
        try await withFolder { folder in
            let endpoint = Endpoint.unix("\(folder)/socket")
            await #expect(throws: NetworkError(.unreachable, .connect, "")) {
                try await Connection(to: endpoint) { TCP() }.start()
            }
            makeStaleSocket("\(folder)/socket")
            await #expect(throws: NetworkError(.connectionRefused, .connect, "")) {
                try await Connection(to: endpoint) { TCP() }.start()
            }
        }
    }

    @Test("a client waits while the listener's backlog is full, and then gets in")
    func backlogFull() async throws {
        let parameters = Parameters().backlog(1)
        let listener = try await Listener(on: .ownName("full"), parameters: parameters) { TCP() }
        let fillers = try fill(listener)
        let client = listener.client()
        let started = Inbox<Void>()
        client.onStateUpdate { if $0 == .ready { started.send() } }
        let opening = Task { try await client.start() }
        // Under way, and still so after another connection's whole life.
        let (near, far) = try Connection.pair()
        async let echoed: Void = echo(far)
        try await expectEcho(of: "meanwhile", from: near)
        try await near.finish()
        try await echoed
        #expect(client.state != .ready)
        try await serving(listener, echo) {
            try await started.next()
            try await expectEcho(of: "in", from: client)
        }
        try await opening.end()
        #expect(client.establishmentReport?.attempts.count == 1)
        withExtendedLifetime(fillers) {}
    }

    @Test("a full backlog outlasts the connection timeout as a timeout")
    func backlogFullForLong() async throws {
        let parameters = Parameters().backlog(1)
        let listener = try await Listener(on: .ownName("full"), parameters: parameters) { TCP() }
        let fillers = try fill(listener)
        let error = try await #require(throws: NetworkError.self) {
            try await listener.client(TCP().connectionTimeout(.milliseconds(30))).start()
        }
        #expect(error.code == .timedOut)
        #expect(error.message.contains("\(listener.localEndpoint)"))
        withExtendedLifetime(fillers) {}
    }

    /// A backlog of one holds two (unix(7) counts those above it).
    private func fill(_ listener: Listener<TCP>) throws -> [PlainSocket] {
        let address = try listener.localEndpoint.abstractAddress
        var sockets: [PlainSocket] = []
        for _ in 0..<2 {
            let socket = try PlainSocket(.unix)
            #expect(socket.descriptor.connect(to: address) == .done(0))
            sockets.append(socket)
        }
        #expect(try PlainSocket(.unix).descriptor.connect(to: address) == .wouldBlock)
        return sockets
    }

    // MARK: The peer

    @Test("each side knows whose process the other is")
    func credentials() async throws {
        let listener = try await Listener(on: .ownName("credentials")) { TCP() }
        let credentials = Inbox<PeerCredentials>()
        try await serving(listener) { connection in
            credentials.send(try connection.peerCredentials())
            try await echo(connection)
        } while: {
            let client = listener.client()
            try await expectEcho(of: "who", from: client)
            for own in [try client.peerCredentials(), try await credentials.next()] {
                #expect(own.processID == getpid())
                #expect(own.userID == geteuid())
                #expect(own.groupID == getegid())
            }
        }
    }

    @Test("TCP has no credentials, and what is closed none any more")
    func noCredentials() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        let client = listener.client()
        #expect(throws: NetworkError(.closed, .setup, "")) { try client.peerCredentials() }
        try await client.start()
        #expect(throws: NetworkError(.notSupported, .setup, "")) { try client.peerCredentials() }
        let (one, _) = try Connection.pair()
        #expect(try one.peerCredentials().processID == getpid())
        one.abort()
        #expect(throws: NetworkError(.closed, .setup, "")) { try one.peerCredentials() }
    }
}
