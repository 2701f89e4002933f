import Glibc
import TestSupport
import Testing
import Towpath

@Suite("Reported cases of stream ends", .timeLimit(.minutes(1)))
struct ConnectionEndCasesTests {
    /// How the peer of BR-001 ends.
    enum End: CaseIterable, CustomTestStringConvertible {
        case close, oneByteThenClose, shutdownKeptOpen, reset

        var testDescription: String { "\(self)" }

        /// A reset drops what has not reached the receiver's queue yet: that much fits there at once.
        var byteCount: Int {
            switch self {
            case .close, .shutdownKeptOpen: 200_000
            case .oneByteThenClose: 1
            case .reset: 50_000
            }
        }
    }

    @Test(
        "BR-001 the last bytes before an end are never lost", arguments: End.allCases,
        [true, false])
    func epollRDHUP(end: End, isParked: Bool) async throws {
        let (near, peer) = try await Streams.connected()
        let bytes = Streams.pattern(end.byteCount)
        func send() async throws {
            try await peer.send(bytes)
            switch end {
            case .close, .oneByteThenClose: peer.close()
            case .shutdownKeptOpen: peer.finish()
            case .reset:
                try await Streams.until {
                    try near.transferReport().receivedByteCount == UInt64(bytes.count)
                }
                peer.reset()
            }
        }
        var first: [UInt8] = []
        if isParked {
            // The reader waits when the end comes.
            let call = await Streams.parked(on: near) { try await near.receive(atMost: 4_096) }
            try await send()
            first = try await call.value ?? []
        } else {
            try await send()
            // The loop has heard of data and end before the first read.
            await Streams.settle(near)
        }
        try await expect(end, bytes, from: near, after: first)
        withExtendedLifetime(peer) {}
    }

    /// 4 kB at a time: every byte, then the end, again and again.
    private func expect(
        _ end: End, _ bytes: [UInt8], from near: Connection<TCP>, after first: [UInt8]
    ) async throws {
        var received = first
        var error: NetworkError?
        do {
            while let new = try await near.receive(atMost: 4_096) { received += new }
        } catch let failure as NetworkError { error = failure }
        Streams.expect(received, toBe: bytes)
        #expect(error?.code == (end == .reset ? .connectionReset : nil))
        for _ in 0..<2 where end != .reset { #expect(try await near.receive() == nil) }
    }

    @Test("BR-002 finish() sends what is queued before the FIN")
    func halfClose() async throws {
        let port = try StreamPort(receiveBuffer: 65_536)
        let near = Connection(to: port.endpoint, parameters: Parameters().sendBufferSize(8_192)) {
            TCP()
        }
        try await near.start()
        let peer = try await port.accept()
        let bytes = Streams.pattern(5_000_000)
        let pieces = (0..<5).map { Array(bytes[$0 * 1_000_000..<($0 + 1) * 1_000_000]) }
        var sends: [Task<Void, any Error>] = []
        for piece in pieces {
            sends.append(await Streams.parked(on: near) { try await near.send(piece) })
        }
        let isFinished = Shared(false)
        let finishing = await Streams.parked(on: near) {
            try await near.finish()
            isFinished.withLock { $0 = true }
        }
        // Writes issued after the half-close fail at once.
        await #expect(throws: Streams.error(.outputFinished)) { try await near.send([1]) }
        #expect(!isFinished.value)
        let reply = Streams.pattern(1_000_000, from: 12_345)
        let received = try await peer.receiveAll()
        Streams.expect(received, toBe: bytes)
        try await finishing.value
        for send in sends { try await send.value }
        let replying = Task {
            try await peer.send(reply)
            peer.close()
        }
        Streams.expect(try await Streams.collect(near), toBe: reply)
        try await replying.value
    }

    @Test("R-02 a reset while the buffer is full fails every pending write once")
    func resetWhileFull() async throws {
        let (near, peer) = try await Streams.connected()
        let bytes = [UInt8](repeating: 1, count: Streams.large)
        let failures = Inbox<NetworkError?>()
        for _ in 0..<8 {
            _ = await Streams.parked(on: near) {
                failures.send(await Streams.failure { try await near.send(bytes) })
            }
        }
        _ = await Streams.parked(on: near) {
            failures.send(await Streams.failure { try await near.finish() })
        }
        let states = near.states
        peer.reset()
        for failure in try await failures.next(9) { #expect(failure?.code == .connectionReset) }
        await #expect(throws: Streams.error(.connectionReset)) { try await near.send([1]) }
        await #expect(throws: Streams.error(.connectionReset)) { try await near.receive() }
        #expect(
            await states.reduce(into: []) { $0.append($1) } == [
                .ready, .failed(Streams.error(.connectionReset)),
            ])
        await near.close()
        #expect(near.state == .failed(Streams.error(.connectionReset)))
    }

    @Test("R-01 a connection to itself is refused")
    func selfConnection() async throws {
        // A port that nobody listens on, bound by the client itself: TCP connects it to itself.
        let port = try StreamPort()
        let number = port.port
        port.close()
        let parameters = Parameters()
            .localEndpoint(.hostPort(host: .ipv4(.loopback), port: number)).addressReuse(true)
        let connection = Connection(to: port.endpoint, parameters: parameters) { TCP() }
        await #expect(throws: Streams.error(.connectionRefused)) { try await connection.start() }
        #expect(connection.state == .failed(Streams.error(.connectionRefused)))
    }
}
