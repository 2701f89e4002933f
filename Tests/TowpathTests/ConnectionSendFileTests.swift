import Glibc
import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("Sending files", .timeLimit(.minutes(1)))
struct ConnectionSendFileTests {
    /// A file of the pattern's first bytes, for the time of the body.
    private func withFile<Value>(
        _ size: Int, _ body: (String) async throws -> Value
    ) async throws -> Value {
        var path = Array("/tmp/towpath-file-XXXXXX".utf8CString)
        let number = mkstemp(&path)
        try Streams.check(number, "mkstemp")
        let name = String(decoding: path.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        let bytes = Streams.pattern(size)
        let written = write(number, bytes, size)
        close(number)
        defer { unlink(name) }
        try #require(written == size)
        return try await body(name)
    }

    @Test(
        "a file arrives whole", arguments: [0, 1, 4_096, 3_000_000], StreamLink.allCases)
    func whole(size: Int, link: StreamLink) async throws {
        let (near, peer) = try await link.peer()
        try await withFile(size) { path in
            let reader = Task { try await peer.receiveAll() }
            try await near.send([1, 2])
            #expect(try await near.sendFile(at: path) == size)
            try await near.send([3])
            try await near.finish()
            Streams.expect(try await reader.value, toBe: [1, 2] + Streams.pattern(size) + [3])
        }
    }

    @Test(
        "a part of a file: from an offset, and no more than there is",
        arguments: [
            (0, 10, 10), (0, 0, 0), (5, 10, 10), (5, nil, 9_995), (0, 20_000, 10_000),
            (9_999, 5, 1), (10_000, nil, 0), (10_000, 1, 0), (20_000, 5, 0), (1, Int.max, 9_999),
            (Int.max, nil, 0), (Int.max, Int.max, 0),
        ] as [(Int, Int?, Int)])
    func part(offset: Int, count: Int?, expected: Int) async throws {
        let (near, peer) = try StreamPeer.joined()
        try await withFile(10_000) { path in
            #expect(try await near.sendFile(at: path, from: offset, count: count) == expected)
            try await near.finish()
            let bytes = try await peer.receiveAll()
            Streams.expect(bytes, toBe: Streams.pattern(expected, from: expected == 0 ? 0 : offset))
        }
    }

    @Test("what cannot be sent is an error, and the connection goes on")
    func impossible() async throws {
        let (near, peer) = try StreamPeer.joined()
        try await withFile(10) { path in
            for name in ["/nonexistent/file", "/tmp", "", "/dev/null", "/dev/zero"] {
                let error = await Streams.failure { try await near.sendFile(at: name) }
                #expect(error != nil, "\(name)")
                #expect(error?.stage == .send)
                #expect(error?.message.hasPrefix("\(name): ") == true)
            }
            for (offset, count) in [(-1, nil), (0, -1), (Int.min, nil)] as [(Int, Int?)] {
                await #expect(throws: NetworkError.self) {
                    try await near.sendFile(at: path, from: offset, count: count)
                }
            }
            #expect(near.state == .ready)
            #expect(try await near.sendFile(at: path) == 10)
            try await near.finish()
            #expect(try await peer.receiveAll() == Streams.pattern(10))
        }
    }

    @Test("a missing file tells its errno")
    func missing() async throws {
        let (near, _) = try Connection.pair()
        let error = await Streams.failure { try await near.sendFile(at: "/nonexistent/file") }
        #expect(error?.cause.map { "\($0)".contains("errno \(ENOENT)") } == true)
    }

    @Test(
        "giving up in the middle ends the sending side, also for those who wait",
        arguments: StreamLink.allCases, [true, false])
    func givenUp(link: StreamLink, byCancellation: Bool) async throws {
        try await withFile(8_000_000) { path in
            let (near, peer, call) = try await begun(path, over: link, byCancellation ? nil : 100)
            // A part of it is out.
            _ = try await peer.receive(exactly: 1)
            let waiting = await Streams.parked(on: near) { try await near.send([1, 2, 3]) }
            if byCancellation { call.cancel() }
            let failure = await call.result
            #expect(throws: (any Error).self) { try failure.get() }
            let received = try await peer.receiveAll()
            #expect(received.count < 7_999_999)
            Streams.expect(received, toBe: Streams.pattern(received.count, from: 1))
            await #expect(throws: Streams.error(.outputFinished)) { try await waiting.value }
            await #expect(throws: Streams.error(.outputFinished)) { try await near.send([4]) }
            // Receiving goes on.
            try await peer.send([5])
            #expect(try await near.receive() == [5])
        }
    }

    /// Begins to send a file, of which the peer reads nothing yet. On a host so slow that the time was
    /// over before, it begins again with more.
    private func begun(
        _ path: String, over link: StreamLink, _ milliseconds: Int?
    ) async throws -> (Connection<TCP>, StreamPeer, Task<Int, any Error>) {
        var timeout: Duration? = milliseconds.map { .milliseconds($0) }
        while true {
            let (near, peer) = try await link.peer()
            let hasEnded = Shared(false)
            let call = Task { [timeout] in
                defer { hasEnded.withLock { $0 = true } }
                return try await near.sendFile(at: path, timeout: timeout)
            }
            try await Streams.until { peer.unreadCount > 0 || hasEnded.value }
            if peer.unreadCount > 0 { return (near, peer, call) }
            timeout = timeout.map { $0 * 4 }
        }
    }

    @Test("a file send that waits its turn is withdrawn whole")
    func withdrawn() async throws {
        let (near, peer) = try await Streams.connected()
        let bytes = Streams.pattern(Streams.large)
        try await withFile(100) { path in
            let first = await Streams.parked(on: near) { try await near.send(bytes) }
            let file = await Streams.parked(on: near) { try await near.sendFile(at: path) }
            let third = await Streams.parked(on: near) { try await near.send([3]) }
            file.cancel()
            await #expect(throws: CancellationError.self) { try await file.value }
            let reader = Task { try await peer.receive(exactly: bytes.count + 1) }
            try await first.value
            try await third.value
            Streams.expect(try await reader.value, toBe: bytes + [3])
        }
    }

    @Test("a peer that closes in the middle fails the call", arguments: StreamLink.allCases)
    func peerCloses(link: StreamLink) async throws {
        let (near, peer) = try await link.peer()
        try await withFile(8_000_000) { path in
            let call = Task { try await near.sendFile(at: path) }
            _ = try await peer.receive(exactly: 1)
            peer.reset()
            let error = await Streams.failure { try await call.value }
            #expect(error?.code == .connectionReset)
            #expect(near.state == .failed(Streams.error(.connectionReset)))
        }
    }

    @Test("closing in the middle ends the call", arguments: StreamLink.allCases)
    func closed(link: StreamLink) async throws {
        let (near, peer) = try await link.peer()
        try await withFile(8_000_000) { path in
            let call = Task { try await near.sendFile(at: path) }
            _ = try await peer.receive(exactly: 1)
            near.abort()
            #expect(await Streams.failure { try await call.value } == Streams.error(.closed))
            #expect(near.state == .cancelled)
            #expect(try await peer.receiveToTheEnd().bytes.count < 7_999_999)
        }
    }

    @Test("close() finishes a file that is under way", arguments: StreamLink.allCases)
    func closeWaits(link: StreamLink) async throws {
        let (near, peer) = try await link.peer()
        try await withFile(1_500_000) { path in
            let call = Task(executorPreference: near.executor) { try await near.sendFile(at: path) }
            let first = try await peer.receive(exactly: 1)
            let gate = try StreamGate()
            let reader = try await peer.reading(behind: gate)
            await Streams.closing(near, opening: gate)
            #expect(try await call.value == 1_500_000)
            Streams.expect(first + (try await reader.value), toBe: Streams.pattern(1_500_000))
        }
    }

    @Test("files and messages of several tasks do not mix")
    func mixed() async throws {
        let (near, far) = try await StreamLink.tcp.pair()
        let message = ConnectionFramingTests.message(7, 300_000)
        try await withFile(0) { path in
            let file = open(path, O_WRONLY)
            let written = write(file, message, message.count)
            close(file)
            try #require(written == message.count)
            let parser = Task { try await ConnectionFramingTests.parse(far) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for sender in 0..<6 as Range<UInt8> {
                    group.addTask {
                        for round in 0..<5 {
                            if sender % 2 == 0 {
                                try await near.sendFile(at: path)
                            } else {
                                try await near.send(
                                    ConnectionFramingTests.message(sender, round * 50_000))
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            try await near.finish()
            #expect(try await parser.value.count == 30)
        }
    }

    @Test("a file that becomes shorter meanwhile ends where it ends")
    func shrinking() async throws {
        let (near, peer) = try StreamPeer.joined()
        try await withFile(8_000_000) { path in
            let call = Task { try await near.sendFile(at: path) }
            _ = try await peer.receive(exactly: 1)
            truncate(path, 4_000_000)
            let reader = Task { try await peer.receiveAll() }
            let sent = try await call.value
            try await near.finish()
            #expect(sent <= 8_000_000)
            #expect(try await reader.value.count == sent - 1)
        }
    }
}
