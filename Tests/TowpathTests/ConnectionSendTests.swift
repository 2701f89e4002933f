import Testing
import Towpath

@Suite("Sending", .timeLimit(.minutes(1)))
struct ConnectionSendTests {
    @Test("every form of send brings the same bytes, in order", arguments: StreamLink.allCases)
    func forms(link: StreamLink) async throws {
        let (near, peer) = try await link.peer()
        try await near.send([1, 2])
        try await near.send("ab".utf8)
        try await near.send(([3, 4] as [UInt8]).span.bytes)
        try await near.send(contentsOf: [[5], [], [6, 7]])
        try await near.send([])
        try await near.send(contentsOf: [])
        try await near.finish()
        #expect(try await peer.receiveAll() == [1, 2, 97, 98, 3, 4, 5, 6, 7])
    }

    @Test("a send that is larger than the kernel's buffer arrives whole", arguments: 0..<4)
    func largeForms(form: Int) async throws {
        let (near, peer) = try await Streams.connected()
        let bytes = Streams.pattern(3_000_000)
        let sender = Task {
            switch form {
            case 0: try await near.send(bytes)
            case 1: try await near.send(bytes.span.bytes)
            case 2:
                // More pieces than one system call takes.
                let pieces = stride(from: 0, to: bytes.count, by: 10_000).map {
                    Array(bytes[$0..<$0 + 10_000])
                }
                try await near.send(contentsOf: pieces)
            default: try await near.send(bytes.lazy.map { $0 })
            }
            try await near.finish()
        }
        let received = try await peer.receiveAll()
        Streams.expect(received, toBe: bytes)
        try await sender.value
    }

    @Test("a send of a cancelled task sends no byte", arguments: StreamLink.allCases)
    func cancelledBefore(link: StreamLink) async throws {
        let (near, peer) = try await link.peer()
        let calls: [@Sendable () async throws -> Void] = [
            { try await near.send([1]) }, { try await near.send(([1] as [UInt8]).span.bytes) },
            { try await near.send("a".utf8) }, { try await near.send(contentsOf: [[1], [2]]) },
            { try await near.finish() },
        ]
        for call in calls {
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                try await call()
            }
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        try await near.send([9])
        try await near.finish()
        #expect(try await peer.receiveAll() == [9])
    }

    @Test("a send of which the kernel took nothing is withdrawn whole", arguments: [true, false])
    func withdrawn(byCancellation: Bool) async throws {
        let (first, second) = try Streams.socketPair()
        let (raw, peer) = (StreamPeer(owning: first), StreamPeer(owning: second))
        let filled = try await raw.fill()
        let near = try Connection(adopting: raw.release()) { TCP() }
        let call = await Streams.parked(on: near) {
            try await near.send(
                [1, 2, 3], timeout: byCancellation ? nil : .milliseconds(10))
        }
        if byCancellation {
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
        } else {
            await #expect(throws: Streams.error(.timedOut)) { try await call.value }
        }
        #expect(try await peer.receive(exactly: filled).count == filled)
        try await near.send([4])
        try await near.finish()
        #expect(try await peer.receiveAll() == [4])
    }

    @Test("a send that waits its turn is withdrawn whole", arguments: [true, false])
    func withdrawnFromQueue(byCancellation: Bool) async throws {
        let (near, peer) = try await Streams.connected()
        let bytes = [UInt8](repeating: 1, count: Streams.large)
        let first = await Streams.parked(on: near) { try await near.send(bytes) }
        let second = await Streams.parked(on: near) {
            try await near.send([2], timeout: byCancellation ? nil : .milliseconds(10))
        }
        let third = await Streams.parked(on: near) { try await near.send([3]) }
        if byCancellation {
            second.cancel()
            await #expect(throws: CancellationError.self) { try await second.value }
        } else {
            await #expect(throws: Streams.error(.timedOut)) { try await second.value }
        }
        let reader = Task { try await peer.receive(exactly: Streams.large + 1) }
        try await first.value
        try await third.value
        let received = try await reader.value
        Streams.expect(received, toBe: bytes + [3])
    }

    @Test(
        "a send that began is finished before the next one, though its caller left",
        arguments: StreamLink.allCases, [true, false])
    func owed(link: StreamLink, byCancellation: Bool) async throws {
        let (near, peer) = try await link.peer()
        let bytes = Streams.pattern(Streams.large)
        let first = await Streams.parked(on: near) {
            try await near.send(bytes, timeout: byCancellation ? nil : .milliseconds(100))
        }
        if byCancellation {
            first.cancel()
            await #expect(throws: CancellationError.self) { try await first.value }
        } else {
            await #expect(throws: Streams.error(.timedOut)) { try await first.value }
        }
        let second = await Streams.parked(on: near) { try await near.send([1, 2, 3]) }
        let third = await Streams.parked(on: near) { try await near.finish() }
        let received = try await peer.receiveAll()
        Streams.expect(received, toBe: bytes + [1, 2, 3])
        try await second.value
        try await third.value
    }

    @Test("what is owed is sent by the loop, without a later call")
    func owedAlone() async throws {
        let (near, peer) = try await Streams.connected()
        let bytes = Streams.pattern(Streams.large)
        let call = await Streams.parked(on: near) {
            try await near.send(contentsOf: [bytes, [1], [2]])
        }
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        let received = try await peer.receive(exactly: bytes.count + 2)
        Streams.expect(received, toBe: bytes + [1, 2])
    }

    @Test("sends go out in the order of the calls")
    func order() async throws {
        let (near, peer) = try await Streams.connected()
        let bytes = [UInt8](repeating: 0, count: Streams.large)
        var calls = [await Streams.parked(on: near) { try await near.send(bytes) }]
        for number in 1...50 as ClosedRange<UInt8> {
            calls.append(
                Task(executorPreference: near.executor) { try await near.send([number]) })
        }
        await Streams.settle(near)
        let received = try await peer.receive(exactly: Streams.large + 50)
        #expect(received.suffix(50) == Array(1...50)[...])
        for call in calls { try await call.value }
    }

    @Test("after finish() nothing more can be sent, and receiving goes on")
    func afterFinish() async throws {
        let (near, peer) = try await Streams.connected()
        try await near.send([1])
        try await near.finish()
        try await near.finish()
        await #expect(throws: Streams.error(.outputFinished)) { try await near.send([2]) }
        await #expect(throws: Streams.error(.outputFinished)) {
            try await near.send(contentsOf: [[2]])
        }
        await #expect(throws: Streams.error(.outputFinished)) {
            try await near.sendFile(at: "/proc/self/exe")
        }
        #expect(try await peer.receiveAll() == [1])
        try await peer.send([3])
        #expect(try await near.receive() == [3])
        #expect(near.state == .ready)
    }
}
