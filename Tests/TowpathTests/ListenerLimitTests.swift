import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("A listener's connection limit", .timeLimit(.minutes(1)))
struct ListenerLimitTests {
    /// Counts those that are served, and serves each until it is told to let it go.
    private final class Counter: Sendable {
        let begun = Inbox<Int>()
        private let now = Tally()

        func serve(_ connection: Connection<TCP>) async throws {
            begun.send(now.add())
            // Before the connection ends, since its place is free from then on.
            defer { now.add(-1) }
            _ = try await connection.receive()
        }
    }

    @Test("beyond it, clients connect and wait until a place is free")
    func holdsBack() async throws {
        let counter = Counter()
        let listener = try await Listener(on: .loopback()) { TCP() }.connectionLimit(2)
        try await serving(listener, counter.serve) {
            let clients = (0..<6).map { _ in listener.client() }
            for client in clients { try await client.start() }
            var most = try await counter.begun.next(2).max() ?? 0
            #expect(listener.connectionCount == 2)
            for client in clients.prefix(4) {
                try await client.finish()
                // The next one gets its place.
                most = max(most, try await counter.begun.next())
            }
            #expect(most == 2)
            for client in clients.suffix(2) {
                try await client.finish()
                let end = try await client.receive()
                #expect(end == nil)
            }
        }
    }

    @Test("a limit raised while it runs lets the waiting in, though nobody leaves")
    func raised() async throws {
        let counter = Counter()
        let listener = try await Listener(on: .loopback()) { TCP() }.connectionLimit(1)
        try await serving(listener, counter.serve) {
            let clients = (0..<4).map { _ in listener.client() }
            for client in clients { try await client.start() }
            _ = try await counter.begun.next()
            #expect(listener.connectionCount == 1)
            listener.connectionLimit(3)
            let counts = try await counter.begun.next(2)
            #expect(counts.sorted() == [2, 3])
            #expect(listener.connectionCount == 3)
            listener.connectionLimit(.max)
            let last = try await counter.begun.next()
            #expect(last == 4)
        }
    }

    @Test("a limit below one is one", arguments: [0, -1])
    func least(limit: Int) async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }.connectionLimit(limit)
        try await serving(listener, echo) {
            try await expectEcho(of: "one", from: listener.client())
        }
    }

    @Test("a full listener can be closed")
    func closed() async throws {
        let counter = Counter()
        let listener = try await Listener(on: .loopback()) { TCP() }.connectionLimit(1)
        let clients = (0..<3).map { _ in listener.client() }
        for client in clients { try await client.start() }
        try await serving(listener, counter.serve) { _ = try await counter.begun.next() }
        #expect(listener.connectionCount == 0)
    }

    @Test("a full listener can be cancelled")
    func cancelled() async throws {
        let counter = Counter()
        let listener = try await Listener(on: .loopback()) { TCP() }.connectionLimit(1)
        let running = Task { try await listener.run(counter.serve) }
        let client = listener.client()
        try await client.start()
        _ = try await counter.begun.next()
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.end() }
    }

    @Test("a full listener that drains serves those who wait, still not more at a time")
    func drained() async throws {
        let counter = Counter()
        let listener = try await Listener(on: .loopback()) { TCP() }.connectionLimit(1)
        let running = Task { try await listener.run(counter.serve) }
        let clients = (0..<3).map { _ in listener.client() }
        for client in clients { try await client.start() }
        var counts = [try await counter.begun.next()]
        listener.drain(within: .seconds(3_600))
        for client in clients.dropLast() {
            try await client.finish()
            counts.append(try await counter.begun.next())
        }
        try await clients[2].finish()
        try await running.end()
        #expect(counts == [1, 1, 1])
    }

    @Test("a full listener that drains ends at the drain's limit")
    func drainedToTheLimit() async throws {
        let counter = Counter()
        let listener = try await Listener(on: .loopback()) { TCP() }.connectionLimit(1)
        let running = Task { try await listener.run(counter.serve) }
        let clients = (0..<3).map { _ in listener.client() }
        for client in clients { try await client.start() }
        _ = try await counter.begun.next()
        listener.drain(within: .milliseconds(20))
        try await running.end()
        for client in clients {
            await #expect(throws: NetworkError(.connectionReset, .receive, "")) {
                try await client.receive()
            }
        }
    }

    @Test("a drain at the moment it becomes full is not missed")
    func drainRace() async throws {
        for _ in 0..<200 {
            let counter = Counter()
            let listener = try await Listener(on: .loopback()) { TCP() }.connectionLimit(1)
            let running = Task { try await listener.run(counter.serve) }
            let client = listener.client()
            try await client.start()
            _ = try await counter.begun.next()
            listener.drain(within: .zero)
            try await running.end()
        }
    }
}
