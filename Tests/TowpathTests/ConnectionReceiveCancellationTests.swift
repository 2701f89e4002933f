import TestSupport
import Testing
import Towpath

@Suite("Cancelling a receive", .timeLimit(.minutes(1)))
struct ConnectionReceiveCancellationTests {
    @Test("a parked receive ends with CancellationError", arguments: ReceiveVariant.allCases)
    func parked(variant: ReceiveVariant) async throws {
        let (near, far) = try Connection.pair()
        try await far.send([1, 2])
        let call = await Streams.parked(on: near) { try await variant.receive(3, from: near) }
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        try await far.send([3])
        try await far.finish()
        // The variants that return what there is had the first bytes already.
        let isWhole = [.exactly, .until, .atLeast].contains(variant)
        #expect(try await Streams.collect(near) == (isWhole ? [1, 2, 3] : [3]))
        #expect(near.state == .ready)
    }

    @Test("a receive of a cancelled task takes no byte", arguments: ReceiveVariant.allCases)
    func cancelledBefore(variant: ReceiveVariant) async throws {
        let (near, far) = try Connection.pair()
        try await far.send([1, 2, 3])
        let call = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await variant.receive(3, from: near)
        }
        await #expect(throws: CancellationError.self) { try await call.value }
        #expect(try await near.receive(exactly: 3) == [1, 2, 3])
    }

    @Test("a thousand random cancellations lose no byte", arguments: StreamLink.allCases)
    func random(link: StreamLink) async throws {
        let (near, far) = try await link.pair()
        let isOver = Shared(false)
        let sender = Task {
            var random = SplitMix64(seed: 1)
            var sent = 0
            while !isOver.value {
                let count = Int.random(in: 1...60, using: &random)
                try await far.send(Streams.pattern(count, from: sent))
                sent += count
                for _ in 0..<Int.random(in: 0...3, using: &random) { await Task.yield() }
            }
            try await far.finish()
            return sent
        }
        var random = SplitMix64(seed: 2)
        var received: [UInt8] = []
        var cancelCount = 0
        while cancelCount < 1_000 {
            let turns = Int.random(in: 0...4, using: &random)
            let count = Int.random(in: 1...2_000, using: &random)
            let kind = Int.random(in: 0...3, using: &random)
            let call = Task { try await Self.receive(kind, count, near) }
            for _ in 0..<turns { await Task.yield() }
            call.cancel()
            do { received += try await call.value } catch is CancellationError { cancelCount += 1 }
        }
        isOver.withLock { $0 = true }
        received += try await Streams.collect(near)
        let sent = try await sender.value
        Streams.expect(received, toBe: Streams.pattern(sent))
    }

    private static func receive(
        _ kind: Int, _ count: Int, _ near: Connection<TCP>
    ) async throws -> [UInt8] {
        switch kind {
        case 0: try await near.receive(atMost: count) ?? []
        case 1: try await near.receive(exactly: count)
        case 2: try await near.receive(until: [10], limit: 1_000_000)
        default: try await ReceiveVariant.into.receive(1, from: near)
        }
    }

    @Test("a thousand receives that time out lose no byte", arguments: StreamLink.allCases)
    func timeouts(link: StreamLink) async throws {
        let (near, far) = try await link.pair()
        var received: [UInt8] = []
        for round in 0..<1_000 {
            let call = Task {
                try await near.receive(exactly: 3, timeout: .microseconds(round % 7 * 20))
            }
            try await far.send(Streams.pattern(1, from: round))
            do { received += try await call.value } catch let error as NetworkError {
                #expect(error.code == .timedOut)
                #expect(error.stage == .receive)
            }
        }
        try await far.finish()
        received += try await Streams.collect(near)
        Streams.expect(received, toBe: Streams.pattern(1_000))
    }

    @Test("a cancelled iteration goes on where it stopped")
    func chunks() async throws {
        let (near, far) = try Connection.pair()
        let first = await Streams.parked(on: near) {
            var bytes: [UInt8] = []
            do { for try await chunk in near.chunks { bytes += chunk } } catch {}
            return bytes
        }
        try await far.send([1, 2])
        await Streams.settle(near)
        first.cancel()
        #expect(try await first.value == [1, 2])
        try await far.send([3])
        try await far.finish()
        #expect(try await Streams.collect(near) == [3])
    }

    @Test("one task's cancellation is not another one's", arguments: StreamLink.allCases)
    func other(link: StreamLink) async throws {
        let (near, far) = try await link.pair()
        let first = await Streams.parked(on: near) { try await near.receive(exactly: 2) }
        let second = await Streams.parked(on: far) { try await far.receive(exactly: 2) }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        try await near.send([1, 2])
        #expect(try await second.value == [1, 2])
    }
}
