import Glibc
import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("A listener's handlers", .timeLimit(.minutes(1)))
struct ListenerHandlerTests {
    private struct Failure: Error, Equatable {}

    @Test("one that throws ends its own connection and no other, and is told")
    func throwing() async throws {
        let events = Inbox<ListenerEvent>()
        let listener = try await Listener(on: .loopback()) { TCP() }.onEvent { events.send($0) }
        try await serving(listener) { connection in
            for try await chunk in connection.chunks {
                if chunk == Array("fail".utf8) { throw Failure() }
                try await connection.send(chunk)
            }
        } while: {
            let (one, other) = (listener.client(), listener.client())
            try await expectEcho(of: "one", from: one)
            try await expectEcho(of: "other", from: other)
            let address = one.localEndpoint
            try await one.send("fail".utf8)
            await #expect(throws: NetworkError(.connectionReset, .receive, "")) {
                try await one.receive()
            }
            guard case .handlerFailed(let error, let remote) = try await events.next() else {
                Issue.record("another event")
                return
            }
            #expect(error as? Failure == Failure())
            #expect(remote == address)
            try await expectEcho(of: "still there", from: other)
            try await expectEcho(of: "a new one", from: listener.client())
        }
    }

    @Test("several observers are told of each event, in words")
    func observers() async throws {
        let (first, second) = (Inbox<ListenerEvent>(), Inbox<ListenerEvent>())
        let listener = try await Listener(on: .loopback()) { TCP() }
            .onEvent { first.send($0) }.onEvent { second.send($0) }
        try await serving(listener) { connection in
            _ = try await connection.receive()
            throw Failure()
        } while: {
            let client = listener.client()
            try await client.start()
            let address = try #require(client.localEndpoint)
            // Not before: the reset could come while the client still connects.
            try await client.send([1])
            for observer in [first, second] {
                let text = "\(try await observer.next())"
                #expect(text.contains("\(address)"))
                #expect(text.contains("Failure"))
            }
        }
    }

    @Test("one that returns closes its connection, after all that it sent")
    func returning() async throws {
        let events = Tally()
        let listener = try await Listener(on: .loopback()) { TCP() }.onEvent { _ in events.add() }
        try await serving(listener) {
            try await $0.send("bye".utf8)
        } while: {
            let client = listener.client()
            // Unread input must not turn the end into a reset.
            try await client.send("not read".utf8)
            #expect(try await client.receive(atLeast: 10, atMost: 10) == Array("bye".utf8))
            #expect(try await client.receive() == nil)
            await client.close()
        }
        #expect(events.count == 0)
    }

    @Test("cancelling run aborts them, waits for them and throws CancellationError")
    func cancelled() async throws {
        let begun = Inbox<Void>()
        let ended = Tally()
        let events = Tally()
        let listener = try await Listener(on: .loopback()) { TCP() }.onEvent { _ in events.add() }
        let running = Task {
            try await listener.run { connection in
                begun.send()
                defer { ended.add() }
                do { _ = try await connection.receive() } catch {
                    #expect(error is CancellationError)
                    // Takes its time.
                    for _ in 0..<100 { await Task.yield() }
                    throw error
                }
            }
        }
        let clients = (0..<4).map { _ in listener.client() }
        for client in clients { try await client.start() }
        _ = try await begun.next(4)
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.end() }
        #expect(ended.count == 4)
        #expect(events.count == 0, "a cancelled handler is no event")
        for client in clients {
            await #expect(throws: NetworkError(.connectionReset, .receive, "")) {
                try await client.receive()
            }
        }
        await #expect(throws: NetworkError(.connectionRefused, .connect, "")) {
            try await listener.client().start()
        }
    }

    @Test("a task that is cancelled already serves nobody")
    func cancelledBefore() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        let gate = Inbox<Void>()
        let running = Task {
            await #expect(throws: CancellationError.self) { try await gate.next() }
            try await listener.run { _ in Issue.record("served") }
        }
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.end() }
    }

    // MARK: Where they run

    @Test("they run on the event loop of their connection")
    func eventLoop() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        try await serving(listener) { connection in
            let own = connection.executor as? EventLoop
            #expect(own != nil && currentLoop() === own)
            for try await chunk in connection.chunks {
                #expect(currentLoop() === own)
                try await connection.send(chunk)
                #expect(currentLoop() === own)
            }
        } while: {
            for _ in 0..<4 { try await expectEcho(of: "where", from: listener.client()) }
        }
    }

    @Test("with concurrentExecutor they run on no event loop")
    func concurrentExecutor() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        try await serving(listener, on: .concurrentExecutor) { connection in
            #expect(currentLoop() == nil)
            for try await chunk in connection.chunks {
                #expect(currentLoop() == nil)
                try await connection.send(chunk)
            }
        } while: {
            for _ in 0..<4 { try await expectEcho(of: "where", from: listener.client()) }
        }
    }

    @Test("connections are dealt to all event loops")
    func dealt() async throws {
        let loops = Inbox<ObjectIdentifier>()
        let listener = try await Listener(on: .loopback()) { TCP() }
        try await serving(listener) { connection in
            loops.send(ObjectIdentifier(connection.executor))
            try await echo(connection)
        } while: {
            var seen: Set<ObjectIdentifier> = []
            // Each client takes a loop too, from a rotation of their own.
            while seen.count < EventLoops.count {
                try await listener.client().start()
                seen.insert(try await loops.next())
            }
        }
    }

    @Test("one that blocks its event loop is told as a stall, if asked for")
    func stall() async throws {
        let (reached, release) = try Descriptor.pair(.stream)
        let gate = (Gate(reached), Gate(release))
        let stalls = Inbox<Duration>()
        let listener = try await Listener(on: .loopback()) { TCP() }
            .reportStalls(longerThan: .milliseconds(20))
        listener.onEvent { event in
            guard case .stalled(let duration) = event else { return }
            stalls.send(duration)
            gate.1.open()
        }
        try await serving(listener) { connection in
            #expect(gate.0.wait(), "blocks until the stall was told")
            try await echo(connection)
        } while: {
            try await expectEcho(of: "blocked", from: listener.client())
            let stall = try await stalls.next()
            #expect(stall >= .milliseconds(20))
        }
    }
}

/// One end of a pair: opening one lets the thread that waits at the other go on.
private final class Gate: Sendable {
    private let socket: Descriptor

    init(_ number: Int32) { socket = Descriptor(owning: number) }

    func open() { _ = [1 as UInt8].withUnsafeBytes { socket.send($0) } }

    /// Blocks the thread.
    func wait() -> Bool { socket.isReady(for: POLLIN) }
}
