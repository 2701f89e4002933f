import TestSupport
import Testing
import Towpath

@Suite("UDP listener: limits", .timeLimit(.minutes(1)))
struct DatagramListenerLimitTests {
    @Test("peers that came before it ran count towards a limit that was set later")
    func limitBeforeRun() async throws {
        let listener = try await Listener(on: .udp4()) { UDP() }
        let peers = try (0..<3).map { _ in try DatagramSocket() }
        for peer in peers { try peer.send([1], to: listener.localEndpoint) }
        let events = Inbox<ListenerEvent>()
        listener.onEvent { events.send($0) }.connectionLimit(1)
        let running = Task { try await listener.run(echoDatagrams) }
        guard case .datagramsDropped(let count) = try await events.next() else {
            Issue.record("another event")
            return
        }
        #expect(count == 2)
        #expect(try await peers[0].receive().bytes == [1])
        #expect(listener.connectionCount == 1)
        listener.close()
        try await running.value
    }

    @Test("a silent peer's messages end, and what it sends later makes a new connection")
    func idleTimeout() async throws {
        let ends = Inbox<String>()
        try await Listener.serving(UDP().idleTimeout(.milliseconds(50))) { connection in
            ends.send("begin")
            for try await datagram in connection.messages {
                ends.send("\(datagram.bytes[0])")
            }
            ends.send("end")
            #expect(try await connection.receive() == nil)
        } while: { listener in
            let peer = try DatagramSocket()
            for round in 1...3 as ClosedRange<UInt8> {
                try peer.send([round], to: listener.localEndpoint)
                #expect(try await ends.next(3) == ["begin", "\(round)", "end"])
            }
            await DatagramProbe.eventually { listener.connectionCount == 0 }
        }
    }

    @Test("sending keeps a connection from idling")
    func idleSender() async throws {
        let ends = Inbox<Bool>()
        try await Listener.serving(UDP().idleTimeout(.milliseconds(500))) { connection in
            #expect(try await connection.receive()?.bytes == [1])
            let wasInTime = try await self.isQuiet(connection)
            // Until it has been more than the limit since the last datagram came.
            let start = ContinuousClock.now
            var (last, widestGap) = (start, Duration.zero)
            while last - start < .milliseconds(1_200) {
                try await connection.send([2] as [UInt8])
                await Task.yield()
                let now = ContinuousClock.now
                widestGap = max(widestGap, now - last)
                last = now
            }
            let isQuiet = try await self.isQuiet(connection)
            widestGap = max(widestGap, ContinuousClock.now - last)
            // A busy machine can make this handler begin, or go on, too late: then once more.
            guard isQuiet || widestGap < .milliseconds(400) && wasInTime else {
                return ends.send(false)
            }
            #expect(isQuiet)
            ends.send(true)
        } while: { listener in
            let peer = try DatagramSocket()
            repeat { try peer.send([1], to: listener.localEndpoint) } while try await !ends.next()
            #expect(peer.hasInput)
        }
    }

    /// Whether there is nothing to receive, and no end either.
    private func isQuiet(_ connection: Connection<UDP>) async throws -> Bool {
        do { _ = try await connection.receive(timeout: .zero) } catch let error as NetworkError {
            return error.code == .timedOut
        }
        return false
    }

    @Test("more datagrams of one peer than may wait are dropped and counted")
    func queueLimit() async throws {
        let (begin, done) = (Inbox<Void>(), Inbox<(received: [UInt8], dropped: Int)>())
        let go = Inbox<Void>()
        try await Listener.serving(UDP().queueLimit(5)) { connection in
            begin.send(())
            try await go.next()
            var received: [UInt8] = []
            while received.count < 5 { received += try await connection.receive()?.bytes ?? [] }
            done.send((received, connection.droppedDatagramCount))
            received = try await connection.receive()?.bytes ?? []
            done.send((received, connection.droppedDatagramCount))
        } while: { listener in
            let peer = try DatagramSocket()
            try peer.send([0], to: listener.localEndpoint)
            try await begin.next()
            for number in 1..<20 as Range<UInt8> {
                try peer.send([number], to: listener.localEndpoint)
            }
            // Another peer's datagram is dealt after these.
            try DatagramSocket().send([99], to: listener.localEndpoint)
            try await begin.next()
            go.send(())
            let first = try await done.next()
            #expect(first.received == [0, 1, 2, 3, 4])
            #expect(first.dropped == 15)
            try peer.send([20], to: listener.localEndpoint)
            let second = try await done.next()
            #expect(second.received == [20])
            #expect(second.dropped == 15)
        }
    }

    @Test(
        "datagrams of more peers than allowed are dropped, told, and welcome once there is room",
        arguments: ["peerLimit", "connectionLimit"])
    func peerLimit(limit: String) async throws {
        let events = Inbox<ListenerEvent>()
        let udp = limit == "peerLimit" ? UDP().peerLimit(2) : UDP()
        try await Listener.serving(udp, events: events) { connection in
            for try await datagram in connection.messages {
                if datagram.bytes == [0] { return }
                try await connection.send(datagram.bytes)
            }
        } while: { listener in
            if limit == "connectionLimit" { listener.connectionLimit(2) }
            let peers = try (0..<3).map { _ in try DatagramSocket() }
            for peer in peers[..<2] {
                try peer.send([1], to: listener.localEndpoint)
                #expect(try await peer.receive().bytes == [1])
            }
            try peers[2].send([1], to: listener.localEndpoint)
            #expect(try await events.next().description == "1 datagrams dropped: too many peers")
            #expect(listener.connectionCount == 2)
            // Those who are there go on.
            try peers[0].send([2], to: listener.localEndpoint)
            #expect(try await peers[0].receive().bytes == [2])
            try peers[1].send([0], to: listener.localEndpoint)
            await DatagramProbe.eventually { listener.connectionCount == 1 }
            try peers[2].send([3], to: listener.localEndpoint)
            #expect(try await peers[2].receive().bytes == [3])
        }
    }

    @Test("a thousand peers come and go, and leave nothing behind")
    func manyPeers() async throws {
        try await Listener.serving { connection in
            if let datagram = try await connection.receive() {
                try await connection.send(datagram.bytes)
            }
        } while: { listener in
            for round in 0..<1_000 {
                let peer = try DatagramSocket()
                try peer.send([UInt8(round % 256)], to: listener.localEndpoint)
                #expect(try await peer.receive().bytes == [UInt8(round % 256)])
            }
            await DatagramProbe.eventually { listener.connectionCount == 0 }
            // One socket serves them all, and every peer was forgotten: the limit is not reached.
            #expect(DatagramProbe.sockets(at: listener.localEndpoint).count == 1)
        }
    }

    @Test("the places of peers that went are free again")
    func placesAreFreed() async throws {
        let events = Inbox<ListenerEvent>()
        try await Listener.serving(UDP().peerLimit(1), events: events) { connection in
            if let datagram = try await connection.receive() {
                try await connection.send(datagram.bytes)
            }
        } while: { listener in
            for round in 0..<200 {
                let peer = try DatagramSocket()
                await DatagramProbe.eventually { listener.connectionCount == 0 }
                try peer.send([UInt8(round)], to: listener.localEndpoint)
                #expect(try await peer.receive().bytes == [UInt8(round)])
            }
        }
    }

    @Test("many peers are served at the same time")
    func atTheSameTime() async throws {
        try await Listener.serving(handler: echoDatagrams) { listener in
            let peers = try (0..<200).map { _ in try DatagramSocket() }
            // Their ports were others' a moment ago, to whom something may still be under way.
            for peer in peers { try peer.connect(to: listener.localEndpoint) }
            for round in 0..<3 as Range<UInt8> {
                for peer in peers { try peer.send([round]) }
                for peer in peers { #expect(try await peer.receive().bytes == [round]) }
            }
            #expect(listener.connectionCount == 200)
        }
    }
}
