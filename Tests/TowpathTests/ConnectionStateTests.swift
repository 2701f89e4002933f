import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("States", .timeLimit(.minutes(1)))
struct ConnectionStateTests {
    /// All states of a connection from now on.
    private func all(_ connection: Connection<TCP>) -> Task<[ConnectionState], Never> {
        let states = connection.states
        return Task { await states.reduce(into: []) { $0.append($1) } }
    }

    @Test("a success: each state once and in order", arguments: ConnectionEnding.allCases)
    func success(ending: ConnectionEnding) async throws {
        let port = try StreamPort()
        let connection = Connection(to: port.endpoint) { TCP() }
        let states = all(connection)
        #expect(connection.state == .setup)
        try await connection.start()
        try await connection.start()
        #expect(connection.state == .ready)
        let peer = try await port.accept()
        peer.close()
        await ending.end(connection)
        #expect(connection.state == .cancelled)
        #expect(await states.value == [.setup, .preparing, .ready, .cancelled])
    }

    @Test("a failure: each state once and in order, and no other follows")
    func failure() async throws {
        let port = try StreamPort()
        port.close()
        let connection = Connection(to: port.endpoint) { TCP() }
        let states = all(connection)
        await #expect(throws: Streams.error(.connectionRefused)) { try await connection.start() }
        let failed = ConnectionState.failed(Streams.error(.connectionRefused))
        #expect(connection.state == failed)
        await connection.close()
        connection.abort()
        #expect(connection.state == failed)
        #expect(await states.value == [.setup, .preparing, failed])
        await #expect(throws: Streams.error(.connectionRefused)) { try await connection.start() }
        await #expect(throws: Streams.error(.connectionRefused)) {
            try await connection.receive()
        }
        await #expect(throws: Streams.error(.connectionRefused)) { try await connection.send([1]) }
    }

    @Test("a text that is no endpoint fails the opening")
    func invalidEndpoint() async throws {
        let connection = Connection(to: "127.0.0.1:70000") { TCP() }
        let states = all(connection)
        await #expect(throws: Streams.error(.invalidEndpoint)) { try await connection.start() }
        #expect(
            await states.value == [
                .setup, .preparing, .failed(Streams.error(.invalidEndpoint)),
            ])
    }

    @Test("closed before it was started", arguments: ConnectionEnding.allCases)
    func cancelledBeforeStart(ending: ConnectionEnding) async throws {
        let port = try StreamPort()
        let connection = Connection(to: port.endpoint) { TCP() }
        let states = all(connection)
        await ending.end(connection)
        #expect(await states.value == [.setup, .cancelled])
    }

    @Test("closed while it is being opened", arguments: ConnectionEnding.allCases)
    func cancelledWhilePreparing(ending: ConnectionEnding) async throws {
        let (port, filler) = try await Streams.unanswering()
        let connection = Connection(to: port.endpoint) { Streams.patientTCP }
        let states = all(connection)
        let start = await Streams.parked(on: connection) { try await connection.start() }
        await ending.end(connection)
        #expect(await states.value == [.setup, .preparing, .cancelled])
        await #expect(throws: Streams.error(.closed)) { try await start.value }
        withExtendedLifetime(filler) {}
    }

    @Test("a reset is the last state, told when a call meets it")
    func reset() async throws {
        let (near, peer) = try await Streams.connected()
        let states = all(near)
        peer.reset()
        await #expect(throws: Streams.error(.connectionReset)) { try await near.receive() }
        await near.close()
        #expect(await states.value == [.ready, .failed(Streams.error(.connectionReset))])
    }

    @Test("several observers hear the same, late ones from where they began")
    func observers() async throws {
        let port = try StreamPort()
        let connection = Connection(to: port.endpoint) { TCP() }
        let first = all(connection)
        let second = all(connection)
        try await connection.start()
        let third = all(connection)
        connection.abort()
        let fourth = all(connection)
        #expect(await first.value == [.setup, .preparing, .ready, .cancelled])
        #expect(await second.value == [.setup, .preparing, .ready, .cancelled])
        #expect(await third.value == [.ready, .cancelled])
        #expect(await fourth.value == [.cancelled])
    }

    @Test("onStateUpdate tells the same, and an observer may act on the connection")
    func onStateUpdate() async throws {
        let port = try StreamPort()
        let connection = Connection(to: port.endpoint) { TCP() }
        let updates = Inbox<ConnectionState>()
        connection.onStateUpdate { [weak connection] state in
            updates.send(state)
            // Within the notification: what it changes is told after it.
            if state == .ready { connection?.abort() }
        }
        try? await connection.start()
        #expect(try await updates.next(4) == [.setup, .preparing, .ready, .cancelled])
    }

    @Test("an observer that leaves is no burden")
    func leaving() async throws {
        let (near, far) = try Connection.pair()
        for await state in near.states {
            #expect(state == .ready)
            break
        }
        far.abort()
        #expect(try await near.receive() == nil)
    }

    @Test("observers on many threads hear each state once and in order", arguments: 0..<20)
    func race(round: Int) async throws {
        let port = try StreamPort()
        let connection = Connection(to: port.endpoint) { TCP() }
        let order: [ConnectionState] = [.setup, .preparing, .ready, .cancelled]
        let heard = await withTaskGroup(of: [ConnectionState].self) { group in
            for _ in 0..<8 {
                group.addTask { await connection.states.reduce(into: []) { $0.append($1) } }
            }
            group.addTask {
                try? await connection.start()
                connection.abort()
                return order
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        // Whoever came late heard the end of the order.
        for states in heard { #expect(states == Array(order.suffix(states.count))) }
    }

    @Test("the body of withConnection runs on the connection's loop, and closes it")
    func executor() async throws {
        let port = try StreamPort()
        let connection = try await withConnection(to: port.endpoint) {
            TCP()
        } body: { connection in
            let loop = try #require(connection.executor as? EventLoop)
            try await connection.start()
            // From its first wait on.
            let peer = try await port.accept()
            #expect(loop.isCurrent)
            peer.close()
            #expect(try await connection.receive() == nil)
            #expect(loop.isCurrent)
            return connection
        }
        #expect(connection.state == .cancelled)
    }
}
