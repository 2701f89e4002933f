import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("Connections in a listener's handler", .timeLimit(.minutes(1)))
struct ConnectionHandlerTests {
    typealias Handler = @Sendable (Connection<TCP>) async throws -> Void

    static func listener() async throws -> Listener<TCP> {
        try await Listener(on: .hostPort(host: .ipv4(.loopback), port: 0)) { TCP() }
    }

    /// Serves while `body` runs, then cancels the listener and waits for it.
    static func serving(
        on executor: Listener<TCP>.HandlerExecutor = .eventLoop, _ handler: @escaping Handler,
        body: (Listener<TCP>, Task<Void, any Error>) async throws -> Void
    ) async throws {
        let listener = try await listener()
        let running = Task { try await listener.run(on: executor, handler) }
        do { try await body(listener, running) } catch {
            running.cancel()
            _ = await running.result
            throw error
        }
        running.cancel()
        _ = await running.result
    }

    /// The ways in which a handler can wait for its connection.
    static let waits: [(name: String, wait: Handler)] = [
        ("receive", { _ = try await $0.receive() }),
        ("exactly", { _ = try await $0.receive(exactly: 5) }),
        ("timeout", { _ = try await $0.receive(timeout: .seconds(3_600)) }),
        ("chunks", { for try await _ in $0.chunks {} }),
        ("send", { try await $0.send([UInt8](repeating: 1, count: 40_000_000)) }),
        (
            "drain",
            {
                await $0.waitForDrain(); _ = try await $0.receive()
            }
        ),
        (
            "child task",
            { connection in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { _ = try await connection.receive() }
                    try await group.next()
                }
            }
        ),
        (
            "async let",
            { connection in
                async let bytes = connection.receive()
                _ = try await bytes
            }
        ),
        (
            "preference",
            { connection in
                try await withTaskExecutorPreference(globalConcurrentExecutor) {
                    _ = try await connection.receive()
                }
            }
        ),
    ]

    @Test(
        "cancelling the listener ends handlers that wait", arguments: waits.map(\.name),
        [Listener<TCP>.HandlerExecutor.eventLoop, .concurrentExecutor])
    func cancel(name: String, executor: Listener<TCP>.HandlerExecutor) async throws {
        let wait = try #require(Self.waits.first { $0.name == name }).wait
        let served = Inbox<Connection<TCP>>()
        let ends = Inbox<Bool>()
        let handler: Handler = { connection in
            served.send(connection)
            do { try await wait(connection) } catch {
                ends.send(error is CancellationError && Task.isCancelled)
                throw error
            }
        }
        try await Self.serving(on: executor, handler) { listener, running in
            var peers: [StreamPeer] = []
            for _ in 0..<4 {
                peers.append(try await StreamPeer.connect(to: listener.port))
                let connection = try await served.next()
                await Streams.settle(connection, turns: 5)
            }
            running.cancel()
            #expect(try await ends.next(4) == [true, true, true, true])
            await #expect(throws: CancellationError.self) { try await running.value }
            // A cancelled handler aborts its connection.
            for peer in peers { #expect(try await peer.receiveToTheEnd().code != 0) }
            #expect(listener.connectionCount == 0)
        }
    }

    @Test("a drain that reaches its limit ends handlers that wait", arguments: waits.map(\.name))
    func drain(name: String) async throws {
        let wait = try #require(Self.waits.first { $0.name == name }).wait
        let served = Inbox<Connection<TCP>>()
        let handler: Handler = { connection in
            served.send(connection)
            try await wait(connection)
        }
        try await Self.serving(handler) { listener, running in
            let peer = try await StreamPeer.connect(to: listener.port)
            let connection = try await served.next()
            await Streams.settle(connection)
            listener.drain(within: .milliseconds(5))
            try await running.value
            #expect(connection.isDraining)
            #expect(try await peer.receiveToTheEnd().code != 0)
        }
    }

    @Test("cancelling at any moment ends every handler", arguments: 0..<30)
    func cancelAnytime(round: Int) async throws {
        let handler: Handler = { connection in
            while let bytes = try await connection.receive() { try await connection.send(bytes) }
        }
        try await Self.serving(handler) { listener, running in
            let port = listener.port
            let clients = (0..<8).map { number in
                Task {
                    let peer = try await StreamPeer.connect(to: port)
                    for _ in 0..<(number + round) {
                        try await peer.send([1, 2, 3])
                        if try await peer.receive(exactly: 3).isEmpty { return }
                    }
                    _ = try await peer.receiveToTheEnd()
                }
            }
            for _ in 0..<round * 20 { await Task.yield() }
            running.cancel()
            _ = await running.result
            #expect(listener.connectionCount == 0)
            for client in clients { _ = await client.result }
        }
    }

    @Test("draining at any moment ends the sequences that ask for it", arguments: 0..<40)
    func drainAnytime(round: Int) async throws {
        let handler: Handler = { connection in
            for try await chunk in connection.chunks(untilDrain: true) {
                try await connection.send(chunk)
            }
        }
        let failures = Shared(0)
        try await Self.serving(handler) { listener, running in
            listener.onEvent { event in
                if case .handlerFailed = event { failures.withLock { $0 += 1 } }
            }
            let peer = try await StreamPeer.connect(to: listener.port)
            for _ in 0..<3 {
                try await peer.send([1])
                #expect(try await peer.receive(exactly: 1) == [1])
            }
            if round % 2 == 0 { try await peer.send([2]) }
            for _ in 0..<round % 5 { await Task.yield() }
            // The limit is out of the test's reach: a wake-up that is lost would show as a hang.
            listener.drain(within: .seconds(3_600))
            #expect(try await peer.receiveAll().count <= 1)
            peer.close()
            try await running.value
            #expect(failures.value == 0)
        }
    }

    @Test("a race of receive and timer in a task group loses no byte")
    func groupTimeout() async throws {
        let rounds = Inbox<Int>()
        let result = Inbox<[UInt8]>()
        let handler: Handler = { connection in
            var received: [UInt8] = []
            for round in 0..<100 {
                rounds.send(round)
                received += try await withThrowingTaskGroup(of: [UInt8].self) { group in
                    group.addTask { try await connection.receive(exactly: 4) }
                    group.addTask {
                        for _ in 0..<round { await Task.yield() }
                        return []
                    }
                    var bytes = try await group.next() ?? []
                    group.cancelAll()
                    // A receive may succeed although it was cancelled meanwhile.
                    if case .success(let others)? = await group.nextResult() { bytes += others }
                    return bytes
                }
                // The owner's own receive between those of its children.
                received += try await connection.receive(exactly: 1)
            }
            received += try await Streams.collect(connection)
            result.send(received)
        }
        try await Self.serving(handler) { listener, _ in
            let peer = try await StreamPeer.connect(to: listener.port)
            for index in 0..<100 {
                _ = try await rounds.next()
                try await peer.send(Streams.pattern(5, from: index * 5))
            }
            peer.finish()
            #expect(try await result.next() == Streams.pattern(500))
        }
    }

    @Test("a receive of a task that the handler only started is not cancelled with the handler")
    func unstructured() async throws {
        let served = Inbox<(Connection<TCP>, Task<[UInt8]?, any Error>)>()
        let handler: Handler = { connection in
            let task = await Streams.parked(on: connection) { try await connection.receive() }
            served.send((connection, task))
            // Ends only by cancellation, and takes its time then.
            await connection.waitForDrain()
            await Streams.settle(connection)
        }
        try await Self.serving(handler) { listener, running in
            let peer = try await StreamPeer.connect(to: listener.port)
            let (_, task) = try await served.next()
            running.cancel()
            _ = await running.result
            #expect(await Streams.failure { try await task.value } == Streams.error(.closed))
            withExtendedLifetime(peer) {}
        }
    }

    @Test("a handler runs on its connection's loop")
    func executor() async throws {
        let isOnLoop = Inbox<Bool>()
        try await Self.serving { connection in
            let loop = connection.executor as? EventLoop
            let before = loop?.isCurrent ?? false
            _ = try await connection.receive()
            isOnLoop.send(before && loop?.isCurrent ?? false)
        } body: { listener, _ in
            let peer = try await StreamPeer.connect(to: listener.port)
            try await peer.send([1])
            #expect(try await isOnLoop.next() == true)
        }
    }
}
