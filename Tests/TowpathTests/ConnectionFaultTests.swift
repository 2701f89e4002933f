import Glibc
import TestSupport
import Testing
import Towpath

@Suite("Hostile and unlucky peers of streams", .timeLimit(.minutes(1)))
struct ConnectionFaultTests {
    @Test("a reset before the connection is used shows at the first use", arguments: [true, false])
    func resetBeforeUse(byReceiving: Bool) async throws {
        let failures = Inbox<NetworkError?>()
        let gone = Inbox<Void>()
        let arrived = Inbox<Void>()
        try await ConnectionHandlerTests.serving { connection in
            arrived.send(())
            _ = try await gone.next()
            failures.send(
                await Streams.failure {
                    if byReceiving { return try await connection.receive() }
                    // The first write after a reset fails at once.
                    while true { try await connection.send([1]) }
                })
        } body: { listener, _ in
            let peer = try await StreamPeer.connect(to: listener.port)
            _ = try await arrived.next()
            peer.reset()
            gone.send(())
            #expect(try await failures.next()?.code == .connectionReset)
        }
    }

    @Test("clients that reset before they are accepted disturb nobody")
    func resetBeforeAccept() async throws {
        let listener = try await ConnectionHandlerTests.listener()
        for _ in 0..<20 { try await StreamPeer.connect(to: listener.port).reset() }
        let good = try await StreamPeer.connect(to: listener.port)
        try await good.send([1])
        let running = Task {
            try await listener.run { connection in
                while let bytes = try await connection.receive() {
                    try await connection.send(bytes)
                }
            }
        }
        #expect(try await good.receive(exactly: 1) == [1])
        running.cancel()
        _ = await running.result
    }

    @Test("a reset during a receive fails it", arguments: ReceiveVariant.allCases)
    func resetDuringReceive(variant: ReceiveVariant) async throws {
        let (near, peer) = try await Streams.connected()
        let call = await Streams.parked(on: near) { try await variant.receive(9, from: near) }
        peer.reset()
        await #expect(throws: Streams.error(.connectionReset)) { try await call.value }
    }

    @Test("a reset during close ends it at once", arguments: [0, 1, 2])
    func resetDuringClose(owing: Int) async throws {
        let (near, peer) = try await Streams.connected()
        let bytes = [UInt8](repeating: 1, count: Streams.large)
        var calls: [Task<Void, any Error>] = []
        for _ in 0..<owing {
            calls.append(await Streams.parked(on: near) { try await near.send(bytes) })
        }
        // What is left of the first is the loop's to send; the second waits in line.
        calls.first?.cancel()
        let closing = await Streams.parked(on: near, turns: 2) { await near.close() }
        peer.reset()
        try await closing.value
        for call in calls {
            let result = await call.result
            #expect(throws: (any Error).self) { try result.get() }
        }
        #expect(near.state.isFinal)
    }

    @Test("a reset while bytes are owed fails the connection, and the next call says so")
    func resetWhileOwing() async throws {
        let (near, peer) = try await Streams.connected()
        let bytes = [UInt8](repeating: 1, count: Streams.large)
        let call = await Streams.parked(on: near) { try await near.send(bytes) }
        call.cancel()
        _ = await call.result
        let states = near.states
        peer.reset()
        // The loop meets it: nobody has to call.
        #expect(
            await states.reduce(into: []) { $0.append($1) } == [
                .ready, .failed(Streams.error(.connectionReset)),
            ])
        await #expect(throws: Streams.error(.connectionReset)) { try await near.send([1]) }
        await #expect(throws: Streams.error(.connectionReset)) { try await near.finish() }
        await #expect(throws: Streams.error(.connectionReset)) { try await near.receive() }
    }

    @Test("a peer that reads one byte at a time gets all", arguments: StreamLink.allCases)
    func slowReader(link: StreamLink) async throws {
        let (near, peer) = try await link.peer()
        let bytes = Streams.pattern(20_000)
        let sender = Task {
            for start in stride(from: 0, to: bytes.count, by: 1_000) {
                try await near.send(Array(bytes[start..<start + 1_000]))
            }
            try await near.finish()
        }
        let received = try await peer.run { number in
            var received: [UInt8] = []
            while case let byte = try Streams.read(number, 1), !byte.isEmpty { received += byte }
            return received
        }
        try await sender.value
        Streams.expect(received, toBe: bytes)
    }

    @Test("a peer with a tiny window gets all")
    func tinyWindow() async throws {
        let (near, peer) = try await Streams.connected(receiveBuffer: 1)
        let bytes = Streams.pattern(30_000)
        let sender = Task {
            try await near.send(bytes)
            try await near.finish()
        }
        Streams.expect(try await peer.receiveAll(), toBe: bytes)
        try await sender.value
    }

    @Test("urgent data neither hangs the reader nor harms the stream", arguments: [true, false])
    func urgent(isParked: Bool) async throws {
        let (near, peer) = try await Streams.connected()
        for round in 0..<50 {
            let bytes = Array("before".utf8) + [UInt8(round)] + Array("after".utf8)
            let call = Task { [isParked] in
                if !isParked { await Streams.settle(near) }
                return try await near.receive(exactly: 12)
            }
            if isParked { await Streams.settle(near, turns: 3) }
            try await peer.send(Array(bytes.prefix(7)))
            try await peer.sendUrgent(33)
            try await peer.send(Array(bytes.dropFirst(7)))
            // The urgent byte itself is out of band.
            #expect(try await call.value == bytes)
        }
        try await peer.sendUrgent(1)
        try await peer.sendUrgent(2)
        peer.finish()
        // An older urgent byte becomes part of the stream, tcp(7).
        #expect(try await Streams.collect(near).count <= 1)
    }

    @Test("descriptors that a peer passes along are not taken, and hang nothing")
    func passedDescriptors() async throws {
        let (near, peer) = try StreamPeer.joined()
        // An end of a pipe of which all other ends are closed once the kernel drops it.
        var ends: [Int32] = [-1, -1]
        try Streams.check(pipe(&ends), "pipe")
        let watched = StreamPeer(owning: ends[0])
        try await peer.send([1])
        try await peer.pass(ends[1], with: 2)
        try await peer.send([3])
        try await peer.pass(ends[1], with: 4)
        close(ends[1])
        peer.finish()
        #expect(try await Streams.collect(near) == [1, 2, 3, 4])
        // The end of the pipe: nobody holds its other side.
        let count = try await watched.run { number in
            var byte: UInt8 = 0
            return Glibc.read(number, &byte, 1)
        }
        #expect(count == 0)
    }

    @Test("passed descriptors do not hang a reader that waits")
    func passedDescriptorsWhileWaiting() async throws {
        let (near, peer) = try StreamPeer.joined()
        let call = await Streams.parked(on: near) { try await near.receive(exactly: 100) }
        for number in 0..<100 as Range<UInt8> {
            if number % 2 == 0 {
                try await peer.pass(peer.number, with: number)
            } else {
                try await peer.send([number])
            }
        }
        #expect(try await call.value == Array(0..<100))
    }
}
