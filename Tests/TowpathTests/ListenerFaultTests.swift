import Glibc
import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("BR-004: faults of accept(2)", .timeLimit(.minutes(1)))
struct ListenerFaultTests {
    /// Calls accept(2), with errors first.
    private final class FaultyAccept: Sendable {
        let calls = Tally()
        private let faults: Locked<[Int32]>

        init(_ faults: [Int32]) { self.faults = Locked(faults) }

        func accept(_ socket: borrowing Descriptor) -> Accepted {
            calls.add()
            let fault = faults.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            return fault.map { .failure($0) } ?? socket.accept()
        }

        func add(_ codes: [Int32]) { faults.withLock { $0 += codes } }
    }

    private static func listener(
        _ faults: FaultyAccept, _ events: Inbox<ListenerEvent>
    ) throws -> Listener<TCP> {
        try Listener(on: .loopback(), TCP(), accept: faults.accept).onEvent { events.send($0) }
    }

    @Test(
        "without descriptors or memory it says so once, waits, and goes on by itself",
        arguments: [EMFILE, ENFILE, ENOBUFS, ENOMEM])
    func exhausted(code: Int32) async throws {
        // 50, 100 and 200 ms apart.
        let faults = FaultyAccept([code, code, code])
        let events = Inbox<ListenerEvent>()
        let listener = try Self.listener(faults, events)
        let start = MonotonicClock.now
        try await serving(listener, echo) {
            guard case .resourcesExhausted(let error) = try await events.next() else {
                Issue.record("another event")
                return
            }
            #expect(error.code == .resourcesExhausted)
            #expect(error.cause == .system(errno: code, call: "accept4"))
            // Their coming must not make it try more often.
            let clients = (0..<20).map { _ in listener.client() }
            for client in clients { try await client.start() }
            guard case .resourcesAvailable = try await events.next() else {
                Issue.record("another event")
                return
            }
            #expect(MonotonicClock.now - start >= 350_000_000, "it backs off")
            for client in clients { try await expectEcho(of: "at last", from: client) }
        }
        // Three failures, each client, and what finds the queue empty.
        #expect((24...45).contains(faults.calls.count), "\(faults.calls.count) calls")
    }

    @Test("each shortage is told again, and begins with short waits")
    func severalTimes() async throws {
        let faults = FaultyAccept([EMFILE])
        let events = Inbox<ListenerEvent>()
        let listener = try Self.listener(faults, events)
        try await serving(listener, echo) {
            for round in 1...3 {
                let shortage = "\(try await events.next())"
                #expect(shortage.contains("RLIMIT_NOFILE"), "round \(round)")
                let client = listener.client()
                try await expectEcho(of: "served", from: client)
                let end = "\(try await events.next())"
                #expect(end == "\(ListenerEvent.resourcesAvailable)")
                faults.add([EMFILE])
                try await listener.client().start()
            }
        }
    }

    @Test("a client that left during the shortage does not keep the next one waiting")
    func queueEmptied() async throws {
        // Two clients that come while it waits; when it looks again, nobody is there.
        let faults = FaultyAccept([EMFILE, EAGAIN])
        let events = Inbox<ListenerEvent>()
        let listener = try Self.listener(faults, events)
        try await serving(listener, echo) {
            _ = try await events.next()
            let available = "\(try await events.next())"
            #expect(available == "\(ListenerEvent.resourcesAvailable)")
            try await expectEcho(of: "the next", from: listener.client())
        }
    }

    @Test("what ends gives its descriptor to who waits")
    func freed() async throws {
        // One descriptor for all.
        let free = Tally()
        free.add()
        let events = Inbox<ListenerEvent>()
        let listener = try Listener(on: .loopback(), TCP()) { socket in
            if free.count == 0 { return .failure(EMFILE) }
            let accepted = socket.accept()
            if !accepted.isNone { free.add(-1) }
            return accepted
        }
        listener.onEvent { events.send($0) }
        try await serving(listener) { connection in
            try await echo(connection)
            free.add()
        } while: {
            let clients = (0..<4).map { _ in listener.client() }
            for client in clients { try await client.start() }
            for client in clients {
                try await expectEcho(of: "my turn", from: client)
                await client.close()
            }
            let shortage = "\(try await events.next())"
            #expect(shortage.contains("RLIMIT_NOFILE"))
            // Told once, and over once nobody waits.
            let end = "\(try await events.next())"
            #expect(end == "\(ListenerEvent.resourcesAvailable)")
        }
    }

    @Test(
        "a connection that was lost before it was accepted is told, and the next one served",
        arguments: [ECONNABORTED, EPROTO, EPERM, ENETDOWN, EHOSTUNREACH, ETIMEDOUT])
    func lost(code: Int32) async throws {
        let faults = FaultyAccept([code, code])
        let events = Inbox<ListenerEvent>()
        let listener = try Self.listener(faults, events)
        try await serving(listener, echo) {
            for _ in 0..<2 {
                guard case .connectionLost(let error) = try await events.next() else {
                    Issue.record("another event")
                    return
                }
                #expect(error.cause == .system(errno: code, call: "accept4"))
                #expect(error.stage == .listen)
            }
            try await expectEcho(of: "next", from: listener.client())
        }
    }

    @Test("BR-008: a signal during accept(2) is nothing")
    func interrupted() async throws {
        let faults = FaultyAccept([EINTR, EINTR, EINTR])
        let listener = try Self.listener(faults, Inbox())
        try await serving(listener, echo) {
            try await expectEcho(of: "next", from: listener.client())
        }
    }

    @Test("a listening socket that broke ends run with the error, and the handlers")
    func broken() async throws {
        let faults = FaultyAccept([])
        let ended = Tally()
        let listener = try Self.listener(faults, Inbox())
        let running = Task {
            try await listener.run { connection in
                defer { ended.add() }
                try await echo(connection)
            }
        }
        let client = listener.client()
        try await expectEcho(of: "works", from: client)
        faults.add([EINVAL])
        try? await listener.client().start()
        let error = await #expect(throws: NetworkError.self) { try await running.end() }
        #expect(error?.cause == .system(errno: EINVAL, call: "accept4"))
        #expect(ended.count == 1)
        await #expect(throws: NetworkError(.connectionReset, .receive, "")) {
            try await client.receive()
        }
    }

    @Test("a drain does not wait for descriptors")
    func drained() async throws {
        let faults = FaultyAccept([Int32](repeating: EMFILE, count: 1_000))
        let events = Inbox<ListenerEvent>()
        let listener = try Self.listener(faults, events)
        let running = Task { try await listener.run(echo) }
        _ = try await events.next()
        listener.drain(within: .seconds(3_600))
        try await running.end()
        #expect(faults.calls.count < 10)
    }

    @Test("a listener without descriptors can be closed")
    func closed() async throws {
        let faults = FaultyAccept([Int32](repeating: EMFILE, count: 1_000))
        let events = Inbox<ListenerEvent>()
        let listener = try Self.listener(faults, events)
        try await serving(listener, echo) { _ = try await events.next() }
        #expect(faults.calls.count < 10)
    }
}
