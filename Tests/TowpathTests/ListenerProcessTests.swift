import Glibc
import TestSupport
import Testing
import Towpath
import TowpathReactor

/// Each in a process of its own, since it counts or limits what the whole process has.
@Suite("A listener in a process of its own", .serialized, .timeLimit(.minutes(2)))
struct ListenerProcessTests {
    @Test("BR-004: out of descriptors it says so once, stays idle, and recovers by itself")
    func descriptorLimit() async {
        await #expect(processExitsWith: .success) {
            OwnProcess.guardAgainstHanging()
            let events = Inbox<ListenerEvent>()
            let listener = try await Listener(on: .loopback()) { TCP() }
            listener.onEvent { events.send($0) }
            let wakeUps = await LoopWakeUps()
            // Connected before the shortage, since they live in this process too.
            let clients = try (0..<50).map { _ in try PlainSocket.client(to: listener.port) }
            OwnProcess.allowDescriptors(10)
            try await serving(listener, echo) {
                guard case .resourcesExhausted(let error) = try await events.next() else {
                    Issue.record("another event")
                    return
                }
                #expect(error.cause == .system(errno: EMFILE, call: "accept4"))
                #expect(listener.connectionCount == 10)
                // 50, 100, 200, 400 ms apart, and two switches for each try.
                let tries = wakeUps.count(inMilliseconds: 700)
                #expect(
                    (1..<30).contains(tries), "\(tries) wake-ups, though nobody can be accepted")
                for client in clients.prefix(10) {
                    #expect(client.send("served"))
                    #expect(client.receive() == "served")
                }
                OwnProcess.allowAllDescriptors()
                guard case .resourcesAvailable = try await events.next() else {
                    Issue.record("another event")
                    return
                }
                for client in clients {
                    #expect(client.send("served"))
                    #expect(client.receive() == "served")
                }
            }
        }
    }

    @Test("BR-004: descriptors that connections give back are used at once")
    func descriptorsFreed() async {
        await #expect(processExitsWith: .success) {
            OwnProcess.guardAgainstHanging()
            let exhaustions = Tally()
            let listener = try await Listener(on: .loopback()) { TCP() }
            listener.onEvent { event in
                if case .resourcesExhausted = event { exhaustions.add() }
            }
            _ = OwnProcess.loops
            let clients = try (0..<40).map { _ in try PlainSocket.client(to: listener.port) }
            OwnProcess.allowDescriptors(2)
            try await serving(listener, echo) {
                for client in clients {
                    #expect(client.send("served"))
                    #expect(client.receive() == "served")
                    client.descriptor.shutdownOutput()
                    #expect(client.receive() == "")
                }
            }
            #expect(exhaustions.count == 1)
        }
    }

    @Test("BR-008: an idle listener with idle connections wakes nobody")
    func idle() async {
        await #expect(processExitsWith: .success) {
            OwnProcess.guardAgainstHanging()
            let wakeUps = await LoopWakeUps()
            let listener = try await Listener(on: .port(0)) { TCP() }
            let unix = try await Listener(on: .ownName("idle")) { TCP() }
            let udp = try await Listener(on: .loopback()) { UDP() }
            let others = [
                Task { try await unix.run(echo) }, Task { try await udp.run { _ in } },
            ]
            try await serving(listener, echo) {
                let clients = [listener.client(), unix.client()]
                for client in clients { try await expectEcho(of: "awake", from: client) }
                // Whatever still happens after an echo is over by then.
                _ = wakeUps.count(inMilliseconds: 100)
                let count = wakeUps.count(inMilliseconds: 1_000)
                #expect(count == 0)
                for client in clients { try await expectEcho(of: "awake", from: client) }
            }
            unix.close()
            udp.close()
            for other in others { try await other.value }
        }
    }

    @Test("BR-008: signals, also a stop and a continuation, end nothing")
    func signals() async {
        await #expect(processExitsWith: .success) {
            OwnProcess.guardAgainstHanging()
            // No SA_RESTART: what waits in the kernel comes back with EINTR.
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { _ in }
            sigaction(SIGUSR1, &action, nil)
            let listener = try await Listener(on: .loopback()) { TCP() }
            try await serving(listener, echo) {
                let client = listener.client()
                try await expectEcho(of: "before", from: client)
                let own = getpid()
                let signals = "kill -USR1 \(own); kill -STOP \(own); kill -CONT \(own)"
                let end = try await Program(shell: "\(signals); \(signals)").end()
                #expect(end.status == 0)
                try await expectEcho(of: "after", from: client)
                try await expectEcho(of: "another", from: listener.client())
            }
        }
    }

    @Test("R-05: connections and listeners that ended leave no descriptor and no registration")
    func nothingLeft() async {
        await #expect(processExitsWith: .success) {
            OwnProcess.guardAgainstHanging()
            let loops = OwnProcess.loops
            // What the first connection makes for good.
            try await Self.useAndEnd()
            let descriptors = OwnProcess.descriptors
            for _ in 0..<20 { try await Self.useAndEnd() }
            #expect(OwnProcess.descriptors == descriptors)
            #expect(loops.map(\.registrationCount) == loops.map { _ in 0 })
            #expect(loops.map(\.timerCount) == loops.map { _ in 0 })
        }
    }

    @Test("descriptors that come along with Unix datagrams are closed")
    func passedDescriptors() async {
        await #expect(processExitsWith: .success) {
            OwnProcess.guardAgainstHanging()
            let path = "/tmp/towpath-rights-\(getpid())"
            defer { unlink(path) }
            let peer = try DatagramSocket(.unix("\(path)-peer"))
            defer { unlink("\(path)-peer") }
            let connection = Connection(
                to: try peer.endpoint, parameters: Parameters().localEndpoint(.unix(path))
            ) { UDP() }
            try await connection.start()
            try peer.connect(to: .unix(path))
            let sender = StreamPeer(owning: dup(peer.number))
            let before = OwnProcess.descriptors
            for _ in 0..<5 {
                try await sender.pass(sender.number, with: 7)
                let datagram = try await connection.receive()
                #expect(datagram?.bytes == [7])
            }
            #expect(OwnProcess.descriptors == before)
        }
    }

    @Test("a file that waits for a thread in vain is given up, and the connection goes on")
    func fileWithoutThread() async {
        await #expect(processExitsWith: .success) {
            OwnProcess.guardAgainstHanging()
            let gate = try StreamGate()
            // As many as the pool has threads: name servers that do not answer hold them like this.
            for _ in 0..<16 { try BlockingPool.shared.submit { try? gate.wait() } }
            let (near, far) = try Connection.pair()
            let error = await Streams.failure {
                try await near.sendFile(at: "/etc/hostname", timeout: .milliseconds(20))
            }
            #expect(error?.code == .timedOut)
            let cancelled = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await near.sendFile(at: "/etc/hostname")
            }
            await #expect(throws: CancellationError.self) { try await cancelled.value }
            try await near.send([1])
            let bytes = try await far.receive()
            #expect(bytes == [1])
            gate.open()
        }
    }

    private static func useAndEnd() async throws {
        let listener = try await Listener(on: .loopback()) { TCP() }
        let unix = try await Listener(on: .ownName("end")) { TCP() }
        let running = Task { try await unix.run(echo) }
        try await serving(listener, echo) {
            let clients = (0..<4).map { $0 < 2 ? listener.client() : unix.client() }
            for client in clients { try await expectEcho(of: "hello", from: client) }
            await clients[0].close()
            clients[1].abort()
            await clients[2].close()
            clients[3].abort()
        }
        unix.close()
        try await running.value
    }

    // MARK: BR-005

    /// Two connections of one loop. Their events lie in one batch, the first one's in front, and its
    /// observer, in the middle of the batch, closes the second and opens a third.
    @Test("BR-005: a connection that gets another's number hears nothing meant for that one")
    func reusedNumber() async {
        await #expect(processExitsWith: .success) {
            OwnProcess.guardAgainstHanging()
            let loop = try #require(OwnProcess.loops.first)
            let third = Inbox<Connection<TCP>>()
            let second = Inbox<Result<[UInt8]?, any Error>>()
            let (near, far) = try Descriptor.pair(.stream)
            let peer = PlainSocket(owning: far)
            try await Task(executorPreference: loop) {
                let (a, farA) = try Connection.pair()
                let (b, farB) = try Connection.pair()
                let number = try b.withSocket { socket in socket.number }
                a.onStateUpdate { state in
                    guard state == .cancelled else { return }
                    b.abort()
                    guard dup2(near, number) == number, close(near) == 0 else { return }
                    guard let c = try? Connection(adopting: number, { TCP() }) else { return }
                    third.send(c)
                }
                Task(executorPreference: loop) {
                    do { second.send(.success(try await b.receive())) } catch {
                        second.send(.failure(error))
                    }
                }
                async let closing: Void = a.close()
                // The other tasks of this loop park meanwhile.
                for _ in 0..<3 { await Task.yield() }
                // The loop is here, so both come in its next batch.
                farA.abort()
                try await farB.send("for b".utf8)
                await closing
            }.value
            let c = try await third.next()
            #expect(peer.send("for c"))
            let bytes = try await c.receive()
            #expect(bytes == Array("for c".utf8))
            let outcome = try await second.next()
            #expect(throws: NetworkError(.closed, .receive, "")) { try outcome.get() }
        }
    }
}
