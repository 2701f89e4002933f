import TestSupport
import Testing
import Towpath

@Suite("UDP listener: handlers and ends", .timeLimit(.minutes(1)))
struct DatagramListenerEndTests {
    struct Thrown: Error, Equatable {}

    @Test("a handler that throws ends only its own connection, and is told")
    func throwing() async throws {
        let events = Inbox<ListenerEvent>()
        try await Listener.serving(events: events) { connection in
            for try await datagram in connection.messages {
                if datagram.bytes == [0] { throw Thrown() }
                try await connection.send(datagram.bytes)
            }
        } while: { listener in
            let (stays, fails) = (try DatagramSocket(), try DatagramSocket())
            for peer in [stays, fails] {
                try peer.send([1], to: listener.localEndpoint)
                #expect(try await peer.receive().bytes == [1])
            }
            try fails.send([0], to: listener.localEndpoint)
            guard case .handlerFailed(let error, let remote) = try await events.next() else {
                Issue.record("another event")
                return
            }
            #expect(error is Thrown)
            #expect(remote == (try fails.endpoint))
            try stays.send([2], to: listener.localEndpoint)
            #expect(try await stays.receive().bytes == [2])
            // A new connection begins for the one that failed.
            try fails.send([3], to: listener.localEndpoint)
            #expect(try await fails.receive().bytes == [3])
        }
    }

    @Test("a handler that is slow does not hold up the other peers")
    func slow() async throws {
        let go = Inbox<Void>()
        try await Listener.serving { connection in
            for try await datagram in connection.messages {
                if datagram.bytes == [0] { try await go.next() }
                try await connection.send(datagram.bytes)
            }
        } while: { listener in
            let (waits, served) = (try DatagramSocket(), try DatagramSocket())
            try waits.send([0], to: listener.localEndpoint)
            for number in 1..<50 as Range<UInt8> {
                try waits.send([number], to: listener.localEndpoint)
                try served.send([number], to: listener.localEndpoint)
                #expect(try await served.receive().bytes == [number])
            }
            #expect(!waits.hasInput)
            go.send(())
            #expect(try await waits.receive(count: 50) == (0..<50).map { [$0] })
        }
    }

    @Test("a connection that a handler ended is begun anew by the next datagram")
    func returning() async throws {
        try await Listener.serving { connection in
            for try await datagram in connection.messages {
                try await connection.send(datagram.bytes)
                return
            }
        } while: { listener in
            let peer = try DatagramSocket()
            for number in 0..<50 as Range<UInt8> {
                try peer.send([number], to: listener.localEndpoint)
                #expect(try await peer.receive().bytes == [number])
                await DatagramProbe.eventually { listener.connectionCount == 0 }
            }
        }
    }

    @Test(
        "closing the listener, or cancelling its task, ends the handlers", arguments: [false, true])
    func ending(byCancelling: Bool) async throws {
        let listener = try await Listener(on: .udp4()) { UDP() }
        listener.onEvent { Issue.record("\($0)") }
        let (begun, ended) = (Inbox<Void>(), Inbox<String>())
        let running = Task {
            try await listener.run { connection in
                begun.send(())
                do {
                    for try await _ in connection.messages {}
                    ended.send("end")
                } catch {
                    ended.send((error as? NetworkError)?.code.description ?? "cancelled")
                    throw error
                }
            }
        }
        let peers = try (0..<5).map { _ in try DatagramSocket() }
        for peer in peers { try peer.send([1], to: listener.localEndpoint) }
        _ = try await begun.next(5)
        let sockets = DatagramProbe.sockets(at: listener.localEndpoint)
        #expect(sockets.count == 1)
        if byCancelling { running.cancel() } else { listener.close() }
        switch await running.result {
        case .success: #expect(!byCancelling)
        case .failure(let error): #expect(byCancelling && error is CancellationError)
        }
        let ways = Set(try await ended.next(5))
        #expect(ways.isSubset(of: ["cancelled", "closed"]))
        if byCancelling { #expect(ways == ["cancelled"]) }
        #expect(listener.connectionCount == 0)
        #expect(!DatagramProbe.isOpen(sockets))
    }

    @Test("a drain tells the handlers, lets them answer, and takes nobody new")
    func drain() async throws {
        let listener = try await Listener(on: .udp4()) { UDP() }
        let events = Inbox<ListenerEvent>()
        listener.onEvent { events.send($0) }
        let begun = Inbox<Void>()
        let running = Task {
            try await listener.run { connection in
                #expect(!connection.isDraining)
                begun.send(())
                for try await _ in connection.messagesUntilDrain {}
                #expect(connection.isDraining)
                let last = try await connection.receive()
                try await connection.send(last?.bytes ?? [])
            }
        }
        let (peer, late) = (try DatagramSocket(), try DatagramSocket())
        try peer.send([1], to: listener.localEndpoint)
        try await begun.next()
        let sockets = DatagramProbe.sockets(at: listener.localEndpoint)
        listener.drain(within: .seconds(50))
        try late.send([2], to: listener.localEndpoint)
        #expect(try await events.next().description.hasPrefix("1 datagrams dropped"))
        try peer.send([3], to: listener.localEndpoint)
        try await running.value
        #expect(try await peer.receive().bytes == [3])
        #expect(!DatagramProbe.isOpen(sockets))
    }

    @Test("a drain cancels those that are still there at its limit")
    func drainLimit() async throws {
        let listener = try await Listener(on: .udp4()) { UDP() }
        let log = Inbox<Bool>()
        let running = Task {
            try await listener.run { connection in
                log.send(true)
                do { for try await _ in connection.messages {} } catch {
                    log.send(error is CancellationError)
                    throw error
                }
            }
        }
        try DatagramSocket().send([1], to: listener.localEndpoint)
        #expect(try await log.next())
        listener.drain(within: .milliseconds(1))
        try await running.value
        #expect(try await log.next())
    }

    @Test("a listener that is dropped before it ran frees everything")
    func drop() async throws {
        weak var observed: Inbox<ListenerEvent>?
        let sockets: [String]
        do {
            let events = Inbox<ListenerEvent>()
            observed = events
            let listener = try await Listener(on: .udp4()) { UDP() }
            listener.onEvent { events.send($0) }
            sockets = DatagramProbe.sockets(at: listener.localEndpoint)
            try DatagramSocket().send([1], to: listener.localEndpoint)
        }
        await DatagramProbe.eventually { !DatagramProbe.isOpen(sockets) }
        await DatagramProbe.eventually("the listener still holds its observer") { observed == nil }
    }

    @Test("a port that is in use is refused, and one that was closed is free")
    func portInUse() async throws {
        let listener = try await Listener(on: .udp("127.0.0.72")) { UDP() }
        let error = try await datagramError {
            _ = try await Listener(on: listener.localEndpoint) { UDP() }
        }
        #expect(error.code == .addressUnavailable)
        #expect(error.stage == .listen)
        listener.close()
        let again = try await Listener(on: listener.localEndpoint) { UDP() }
        #expect(again.port == listener.port)
    }
}
