import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("Draining a listener", .timeLimit(.minutes(1)))
struct ListenerDrainTests {
    /// As long as it takes.
    private static let patient = Duration.seconds(3_600)

    @Test("those that wait to be accepted are served, and run returns when they are gone")
    func queued() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        let clients = (0..<3).map { _ in listener.client() }
        for client in clients { try await client.start() }
        listener.drain(within: Self.patient)
        let running = Task {
            try await listener.run { connection in
                #expect(connection.isDraining)
                await connection.waitForDrain()
                try await echo(connection)
            }
        }
        for client in clients {
            try await expectEcho(of: "waited", from: client)
            await client.close()
        }
        try await running.end()
    }

    @Test("one that serves nobody ends at once")
    func idle() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        let running = Task { try await listener.run(echo) }
        try await expectEcho(of: "running", from: listener.client())
        listener.drain(within: Self.patient)
        try await running.end()
        await #expect(throws: NetworkError(.connectionRefused, .connect, "")) {
            try await listener.client().start()
        }
    }

    @Test("new clients are refused while the old ones are still served")
    func stopsListening() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        let running = Task { try await listener.run(echo) }
        let client = listener.client()
        try await expectEcho(of: "before", from: client)
        listener.drain(within: Self.patient)
        try await expectRefusal(by: listener)
        try await expectEcho(of: "after", from: client)
        await client.close()
        try await running.end()
    }

    /// Those who come before the listener has seen that it drains are served like the queued.
    private func expectRefusal(by listener: Listener<TCP>) async throws {
        var refusal: NetworkError?
        while refusal == nil {
            do {
                let client = listener.client()
                try await client.start()
                await client.close()
            } catch let error as NetworkError {
                // Reset: it was queued when the listener closed.
                if error.code != .connectionReset { refusal = error }
            }
        }
        #expect(refusal?.code == .connectionRefused)
    }

    @Test("handlers are told, by a flag and by a call that waits, without being cancelled")
    func tellsHandlers() async throws {
        let begun = Inbox<Bool>()
        let listener = try await Listener(on: .loopback()) { TCP() }
        let running = Task {
            try await listener.run { connection in
                begun.send(connection.isDraining)
                await connection.waitForDrain()
                #expect(connection.isDraining)
                #expect(!Task.isCancelled)
                try await connection.send("bye".utf8)
            }
        }
        let clients = (0..<3).map { _ in listener.client() }
        for client in clients { try await client.start() }
        let flags = try await begun.next(3)
        #expect(flags == [false, false, false])
        listener.drain(within: Self.patient)
        for client in clients {
            let text = try await client.receive()
            #expect(text == Array("bye".utf8))
            await client.close()
        }
        try await running.end()
    }

    @Test("waiting for a drain ends with the task's cancellation")
    func waitCancelled() async throws {
        let begun = Inbox<Void>()
        let listener = try await Listener(on: .loopback()) { TCP() }
        try await serving(listener) { connection in
            begun.send()
            await connection.waitForDrain()
            #expect(Task.isCancelled)
            #expect(!connection.isDraining)
        } while: {
            try await listener.client().start()
            try await begun.next()
        }
    }

    @Test("no client's connection drains")
    func client() async throws {
        let (one, _) = try Connection.pair()
        #expect(!one.isDraining)
        let waiting = Task { await one.waitForDrain() }
        waiting.cancel()
        await waiting.value
    }

    @Test("those that are left at the limit are cancelled, and run returns without an error")
    func limit() async throws {
        let begun = Inbox<Void>()
        let ended = Tally()
        let listener = try await Listener(on: .loopback()) { TCP() }
        let running = Task {
            try await listener.run { connection in
                begun.send()
                defer { ended.add() }
                _ = try await connection.receive()
            }
        }
        let client = listener.client()
        try await client.start()
        try await begun.next()
        listener.drain(within: .milliseconds(20))
        try await running.end()
        #expect(ended.count == 1)
        await #expect(throws: NetworkError(.connectionReset, .receive, "")) {
            try await client.receive()
        }
    }

    // MARK: More than once

    /// One handler that would go on for ever, and a drain that would let it for an hour.
    private func withDraining(
        _ body: (Listener<TCP>, Connection<TCP>) async throws -> Void
    ) async throws {
        let begun = Inbox<Void>()
        let listener = try await Listener(on: .loopback()) { TCP() }
        let running = Task {
            try await listener.run { connection in
                begun.send()
                await connection.waitForDrain()
                begun.send()
                _ = try await connection.receive()
            }
        }
        let client = listener.client()
        try await client.start()
        try await begun.next()
        listener.drain(within: Self.patient)
        try await begun.next()
        // From here on only the handler is waited for.
        try await expectRefusal(by: listener)
        try await body(listener, client)
        try await running.end()
    }

    @Test("a second drain with an earlier end ends it earlier")
    func earlierEnd() async throws {
        try await withDraining { listener, _ in listener.drain(within: .zero) }
    }

    @Test("a second drain with a later end changes nothing")
    func laterEnd() async throws {
        try await withDraining { listener, _ in
            listener.drain(within: .milliseconds(20))
            listener.drain(within: Self.patient)
        }
    }

    @Test("close() ends a drain at once")
    func closeWhileDraining() async throws {
        try await withDraining { listener, _ in listener.close() }
    }

    @Test("from several threads at once it is one drain")
    func severalThreads() async throws {
        try await withDraining { listener, client in
            await withTaskGroup { group in
                for _ in 0..<8 {
                    group.addTask { @concurrent in listener.drain(within: .seconds(3_600)) }
                }
            }
            await client.close()
        }
    }

    @Test("a drain after the end is nothing")
    func afterEnd() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        try await serving(listener, echo) {
            try await expectEcho(of: "running", from: listener.client())
        }
        listener.drain(within: .zero)
        await #expect(throws: NetworkError(.closed, .listen, "")) { try await listener.run(echo) }
    }

    @Test("cancelling the task while it drains cancels the handlers")
    func cancelled() async throws {
        let begun = Inbox<Void>()
        let listener = try await Listener(on: .loopback()) { TCP() }
        let running = Task {
            try await listener.run { connection in
                begun.send()
                await #expect(throws: CancellationError.self) { try await connection.receive() }
            }
        }
        let client = listener.client()
        try await client.start()
        try await begun.next()
        listener.drain(within: Self.patient)
        running.cancel()
        _ = await running.result
        await #expect(throws: NetworkError(.connectionReset, .receive, "")) {
            try await client.receive()
        }
        #expect(listener.connectionCount == 0)
    }

    // MARK: Sequences

    @Test("chunks until the drain end with it, once what was received is consumed")
    func chunks() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        let running = Task {
            try await listener.run { connection in
                for try await chunk in connection.chunks(untilDrain: true) {
                    try await connection.send(chunk)
                }
            }
        }
        let client = listener.client()
        try await expectEcho(of: "before", from: client)
        listener.drain(within: Self.patient)
        let end = try await client.receive()
        #expect(end == nil)
        await client.close()
        try await running.end()
    }

    @Test("a drain at the moment a receive parks is not missed")
    func chunksRace() async throws {
        for _ in 0..<300 {
            let begun = Inbox<Void>()
            let listener = try await Listener(on: .loopback()) { TCP() }
            let running = Task {
                try await listener.run { connection in
                    begun.send()
                    for try await _ in connection.chunks(untilDrain: true) {}
                }
            }
            let client = listener.client()
            try await client.start()
            try await begun.next()
            listener.drain(within: Self.patient)
            let end = try await client.receive()
            #expect(end == nil)
            await client.close()
            try await running.end()
        }
    }
}
