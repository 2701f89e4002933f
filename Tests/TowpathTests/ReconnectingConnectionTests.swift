import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("A client that keeps itself connected", .timeLimit(.minutes(1)))
struct ReconnectingConnectionTests {
    private static let hasty = ReconnectPolicy().initialDelay(.zero).stableAfter(.zero)
    private static let patient = ReconnectPolicy().initialDelay(.seconds(3_600))
        .maximumDelay(.seconds(3_600))

    private struct Failure: Error {}

    private static func client(
        _ server: WebSocketServer, _ policy: ReconnectPolicy = hasty
    ) -> (ReconnectingConnection<WebSocket>, Inbox<String>) {
        let client = ReconnectingConnection(to: server.listener.localEndpoint, policy: policy) {
            WebSocket()
        }
        return (client, events(of: client))
    }

    /// The events' names.
    private static func events<Top: NetworkProtocol>(
        of client: ReconnectingConnection<Top>
    ) -> Inbox<String> {
        let events = Inbox<String>()
        client.onEvent { event in
            switch event {
            case .connecting(let attempt): events.send("connecting \(attempt)")
            case .attemptFailed(let error): events.send("failed \(error.code)")
            case .disconnected(let error): events.send("disconnected \(error.code)")
            case .waiting: events.send("waiting")
            case .waitingForPath: events.send("no path")
            case .connected: events.send("connected")
            }
        }
        return events
    }

    // MARK: Staying connected

    @Test("each connection that the peer ends is followed by another, and the events tell why")
    func reconnects() async throws {
        let server = try await WebSocketServer()
        let count = Tally()
        try await server.serve { connection in
            if count.add() < 3 { return }
            try await echoMessages(connection)
        } while: {
            let (client, events) = Self.client(server)
            try await client.run { connection in
                if count.count < 3 {
                    for try await _ in connection.messages {}
                } else {
                    try await connection.send(.text("here"))
                    expectEqual(try await connection.receive(), .text("here"))
                }
            }
            let once = ["connecting 1", "connected", "disconnected closedByPeer", "waiting"]
            expectEqual(try await events.next(10), once + once + ["connecting 1", "connected"])
        }
        #expect(count.count == 3)
    }

    @Test("of a stream, a datagram peer and values it is the same")
    func otherProtocols() async throws {
        let listener = try await Listener(on: .loopback()) { Coder(Int.self, using: .json) }
        try await serving(listener) { connection in
            guard let number = try await connection.receive() else { return }
            try await connection.send(number + 1)
        } while: {
            let client = ReconnectingConnection(to: listener.localEndpoint, policy: Self.hasty) {
                Coder(Int.self, using: .json)
            }
            var sum = 0
            try await client.fail(as: Failure.self) { connection in
                try await connection.send(sum)
                for try await number in connection.messages { sum = number }
                if sum == 3 { throw Failure() }
            }
            #expect(sum == 3)
        }
    }

    @Test("a body that throws a network error gets a new connection, and any other ends the client")
    func bodyThrows() async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let (client, events) = Self.client(server)
            var count = 0
            try await client.fail(as: Failure.self) { connection in
                count += 1
                if count == 1 { _ = try await connection.receive(timeout: .zero) }
                if count == 2 {
                    connection.abort()
                    _ = try await connection.receive()
                }
                throw Failure()
            }
            expectEqual(
                try await events.next(10).filter { $0.hasPrefix("disconnected") },
                ["disconnected timedOut", "disconnected closed"])
            await #expect(throws: NetworkError(.closed, .setup, "")) {
                try await client.connection()
            }
        }
    }

    @Test("the protocols are made for each attempt")
    func stackOfEachAttempt() async throws {
        let paths = Inbox<String>()
        let server = try await WebSocketServer(
            WebSocket().onRequest { request in
                paths.send(request.path)
                return request.path == "/3" ? .accept() : .refuse(status: 503)
            })
        try await server.serve {
            let attempts = Tally()
            let client = ReconnectingConnection(
                to: server.listener.localEndpoint, policy: Self.hasty
            ) { WebSocket(path: "/\(attempts.add())") }
            try await client.run { _ in }
            expectEqual(try await paths.next(3), ["/1", "/2", "/3"])
        }
    }

    // MARK: Giving up

    @Test("after so many attempts the last error is thrown, to those too who wait for a connection")
    func limit() async throws {
        let place = try await Listener(on: .loopback(last: 78)) { TCP() }
        place.close()
        let client = ReconnectingConnection(
            to: place.localEndpoint, policy: Self.hasty.attemptLimit(3)
        ) { TCP() }
        let events = Self.events(of: client)
        let waiting = Task { try await client.connection() }
        await #expect(throws: NetworkError(.connectionRefused, .connect, "")) {
            try await client.run { _ in Issue.record("nobody listens") }
        }
        await #expect(throws: NetworkError(.connectionRefused, .connect, "")) {
            try await waiting.value
        }
        let once = ["failed connectionRefused", "waiting"]
        expectEqual(
            try await events.next(8),
            ["connecting 1"] + once + ["connecting 2"] + once
                + ["connecting 3", "failed connectionRefused"])
        await #expect(throws: NetworkError(.closed, .setup, "")) { try await client.run { _ in } }
    }

    @Test("a refusal for good and an endpoint that is none are thrown at once")
    func hopeless() async throws {
        let server = try await WebSocketServer(WebSocket().onRequest { _ in .refuse(status: 401) })
        try await server.serve {
            let (client, _) = Self.client(server, Self.patient)
            let error = await Streams.failure { try await client.run { _ in } }
            #expect(error?.code == .upgradeRefused)
            let nowhere = ReconnectingConnection(to: "no:end:point", policy: Self.patient) { TCP() }
            let other = await Streams.failure { try await nowhere.run { _ in } }
            #expect(other?.code == .invalidEndpoint)
        }
    }

    // MARK: The connection of the moment

    @Test("other tasks have the connection that stands, or wait for one")
    func connection() async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let (client, _) = Self.client(server)
            let hurried = await Streams.failure { try await client.connection(timeout: .zero) }
            #expect(hurried?.code == .timedOut)
            let cancelled = Task { try await client.connection() }
            cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }
            async let running: Void = client.run { connection in
                for try await message in connection.messages where message == .text("again") {
                    connection.abort()
                }
            }
            let first = try await client.connection()
            try await first.send(.text("again"))
            // Its end is known before another one stands.
            try await Streams.until { first.state.isFinal }
            let second = try await client.connection()
            #expect(first !== second)
            await client.close()
            try await running
        }
    }

    // MARK: The end

    @Test("close() ends it in good order: a body, a wait, an attempt, and what has not begun")
    func closes() async throws {
        let ends = Inbox<WebSocketCloseStatus?>()
        let server = try await WebSocketServer()
        try await server.serve { connection in
            for try await _ in connection.messages {}
            ends.send(connection.closeStatus)
        } while: {
            let (client, events) = Self.client(server)
            async let running: Void = client.run { for try await _ in $0.messages {} }
            _ = try await events.next(2)
            await client.close()
            try await running
            expectEqual(try await ends.next()?.code, .normalClosure)
        }
        let (waiting, events) = Self.client(server, Self.patient)
        async let running: Void = waiting.run { _ in }
        _ = try await events.next(3)
        await waiting.close()
        try await running
        // Nobody answers.
        let silent = try PlainSocket.bound(to: .loopback(0))
        let target = try Endpoint.loopback(silent.port)
        let asking = ReconnectingConnection(to: target) { WebSocket() }
        let asked = Self.events(of: asking)
        async let attempt: Void = asking.run { _ in }
        _ = try await asked.next()
        await asking.close()
        try await attempt
        let early = ReconnectingConnection(to: target) { WebSocket() }
        await early.close()
        await #expect(throws: NetworkError(.closed, .setup, "")) { try await early.connection() }
        try await early.run { _ in Issue.record("closed") }
    }

    @Test("a body that closes its connection itself has done its work")
    func bodyCloses() async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let (client, _) = Self.client(server)
            try await client.run { connection in await connection.close() }
        }
        let listener = try await Listener(on: .loopback()) { TCP() }
        try await serving(listener, echo) {
            let client = ReconnectingConnection(to: listener.localEndpoint) { TCP() }
            try await client.run { connection in await connection.close() }
        }
    }

    @Test("a cancelled task ends it at once, in its body and in a wait")
    func cancels() async throws {
        let lost = Inbox<NetworkError.Code?>()
        let server = try await WebSocketServer()
        try await server.serve { connection in
            lost.send(await Streams.failure { try await connection.receive() }?.code)
        } while: {
            let (client, events) = Self.client(server)
            let running = Task { try await client.run { for try await _ in $0.messages {} } }
            _ = try await events.next(2)
            running.cancel()
            await #expect(throws: CancellationError.self) { try await running.value }
            expectEqual(try await lost.next(), .connectionReset)
        }
        let (waiting, events) = Self.client(server, Self.patient)
        let running = Task { try await waiting.run { _ in } }
        _ = try await events.next(3)
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
    }

    // MARK: Paths

    @Test("without a path nothing is tried, and at once when one comes, or comes back")
    func path() async throws {
        guard await NetworkNamespace.isPossible("reconnecting with a path") else { return }
        try await NetworkNamespace().run("insideReconnecting")
    }

    @Test func insideReconnecting() async throws {
        guard NetworkNamespace.isInside() else { return }
        let client = ReconnectingConnection(to: .udp("192.0.2.9", 9), policy: Self.patient) {
            TCP()
        }
        let events = Self.events(of: client)
        let running = Task { try await client.run { _ in } }
        let address = ["ip", "addr", "add", "192.0.2.9/32", "dev", "lo"]
        expectEqual(try await events.next(), "no path")
        try await Program.succeed(address)
        // Nobody listens, and the next attempt would come in an hour.
        expectEqual(
            try await events.next(3), ["connecting 1", "failed connectionRefused", "waiting"])
        // Looks before, so that it sees the loss when the client's does.
        let monitor = PathMonitor(to: .udp("192.0.2.9", 9))
        try await monitor.waitUntil { $0.status == .satisfied }
        try await Program.succeed(["ip", "addr", "del", "192.0.2.9/32", "dev", "lo"])
        try await monitor.waitUntil { $0.status == .unsatisfied }
        let listener = try await Listener(on: .port(9)) { TCP() }
        try await serving(listener, echo) {
            try await Program.succeed(address)
            expectEqual(try await events.next(2), ["connecting 2", "connected"])
            try await running.value
        }
    }
}

extension ReconnectingConnection {
    /// Runs, which must throw an error of this type.
    fileprivate func fail<Failure: Error>(
        as type: Failure.Type, _ body: (Connection<Top>) async throws -> Void
    ) async throws {
        do {
            try await run(body)
            Issue.record("no \(type)")
        } catch is Failure {}
    }
}
