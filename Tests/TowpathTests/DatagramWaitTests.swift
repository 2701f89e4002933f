import Glibc
import TestSupport
import Testing
import Towpath

@Suite("UDP connection: waiting, cancelling, ending", .timeLimit(.minutes(1)))
struct DatagramWaitTests {
    @Test("a receive that times out has lost nothing", arguments: [false, true])
    func timeout(again: Bool) async throws {
        let (connection, peer) = try await DatagramProbe.connected()
        for _ in 0..<(again ? 10 : 1) {
            let error = try await datagramError {
                _ = try await connection.receive(timeout: .milliseconds(1))
            }
            #expect(error.code == .timedOut)
            #expect(error.stage == .receive)
        }
        try peer.send([1])
        #expect(try await connection.receive(timeout: .seconds(50))?.bytes == [1])
    }

    @Test("a receive whose time is up still takes what is there")
    func zeroTimeout() async throws {
        let (connection, peer) = try await DatagramProbe.connected()
        try peer.send([1])
        #expect(try await connection.receive(timeout: .zero)?.bytes == [1])
        let error = try await datagramError { _ = try await connection.receive(timeout: .zero) }
        #expect(error.code == .timedOut)
    }

    @Test("cancelled receives lose nothing, whenever they are cancelled")
    func cancellation() async throws {
        let (connection, peer) = try await DatagramProbe.connected()
        var received: [UInt8] = []
        for number in 0..<100 as Range<UInt8> {
            let receive = Task { try await connection.receive()?.bytes }
            if number % 3 == 0 { await Task.yield() }
            if number % 2 == 0 { try peer.send([number]) }
            receive.cancel()
            if number % 2 == 1 { try peer.send([number]) }
            do { received += try await receive.value ?? [] } catch is CancellationError {}
        }
        while received.count < 100 {
            received += try #require(try await connection.receive()?.bytes)
        }
        #expect(received == Array(0..<100))
    }

    @Test("a cancelled task sends and receives nothing", arguments: 0..<4)
    func cancelledBefore(call: Int) async throws {
        let (connection, peer) = try await DatagramProbe.connected()
        try peer.send([1])
        let task = Task {
            // Until the task is cancelled.
            for await _ in AsyncStream<Void>.makeStream().stream {}
            switch call {
            case 0: try await connection.send([2] as [UInt8])
            case 1: try await connection.send(contentsOf: [[2], [3]])
            case 2: try await connection.send([2, 3].span.bytes)
            default: _ = try await connection.receive()
            }
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(!peer.hasInput)
        #expect(try await connection.receive()?.bytes == [1])
    }

    @Test(
        "a waiting receive ends when the connection does", arguments: ["close", "abort", "cancel"])
    func end(way: String) async throws {
        let (connection, _) = try await DatagramProbe.connected()
        let sockets = DatagramProbe.sockets(at: try #require(connection.localEndpoint))
        let receive = Task { try await connection.receive() }
        await Task.yield()
        switch way {
        case "close": await connection.close()
        case "abort": connection.abort()
        default: receive.cancel()
        }
        switch await receive.result {
        case .success: Issue.record("received something")
        case .failure(let error as NetworkError): #expect(error.code == .closed)
        case .failure(let error): #expect(error is CancellationError && way == "cancel")
        }
        #expect(DatagramProbe.isOpen(sockets) == (way == "cancel"))
    }

    @Test("a connection that is dropped closes its socket")
    func drop() async throws {
        var connection: Connection<UDP>?
        let peer = try DatagramSocket()
        connection = Connection(to: try peer.endpoint) { UDP() }
        try await connection?.start()
        let sockets = DatagramProbe.sockets(at: try #require(connection?.localEndpoint))
        #expect(sockets.count == 1)
        connection = nil
        await DatagramProbe.eventually { !DatagramProbe.isOpen(sockets) }
    }

    @Test("a receive keeps the connection that nobody else holds")
    func parkedCall() async throws {
        let peer = try DatagramSocket()
        let local = Inbox<Endpoint>()
        let receive = Task { [endpoint = try peer.endpoint] in
            let connection = Connection(to: endpoint) { UDP() }
            try await connection.start()
            local.send(try #require(connection.localEndpoint))
            return try await connection.receive()?.bytes
        }
        try peer.send([1], to: try await local.next())
        #expect(try await receive.value == [1])
    }

    @Test("withConnection closes on every way out", arguments: [false, true])
    func scope(throwing: Bool) async throws {
        struct Thrown: Error {}
        let peer = try DatagramSocket()
        let log = Inbox<(Endpoint, [String])>()
        do {
            try await withConnection(to: try peer.endpoint) {
                UDP()
            } body: { connection in
                try await connection.send([1] as [UInt8])
                let local = try #require(connection.localEndpoint)
                log.send((local, DatagramProbe.sockets(at: local)))
                if throwing { throw Thrown() }
            }
            #expect(!throwing)
        } catch { #expect(error is Thrown) }
        let (local, sockets) = try await log.next()
        #expect(sockets.count == 1)
        #expect(!DatagramProbe.isOpen(sockets))
        #expect(try await peer.receive().from == local)
    }

    @Test("datagrams of several tasks are whole, each task's in order")
    func concurrentSenders() async throws {
        let (connection, peer) = try await DatagramProbe.connected()
        try peer.enlarge()
        try await withThrowingTaskGroup { group in
            for task in 0..<8 as Range<UInt8> {
                group.addTask {
                    for number in 0..<10 as Range<UInt8> {
                        let bytes = [UInt8](repeating: task, count: 100) + [number]
                        if number % 2 == 0 {
                            try await connection.send(bytes)
                        } else {
                            try await connection.send(contentsOf: [bytes])
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        var counts = [UInt8](repeating: 0, count: 8)
        for datagram in try await peer.receive(count: 80) {
            let task = datagram[0]
            #expect(datagram == [UInt8](repeating: task, count: 100) + [counts[Int(task)]])
            counts[Int(task)] += 1
        }
    }
}
