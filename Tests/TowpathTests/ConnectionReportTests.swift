import Testing
import Towpath

@Suite("What a connection knows of itself", .timeLimit(.minutes(1)))
struct ConnectionReportTests {
    @Test("the establishment report of a literal address")
    func literal() async throws {
        let port = try StreamPort()
        let connection = Connection(to: port.endpoint) { TCP() }
        #expect(connection.establishmentReport == nil)
        try await connection.start()
        let report = try #require(connection.establishmentReport)
        #expect(report.resolutions.map(\.source) == [.literal])
        #expect(report.attempts.map(\.endpoint) == [port.endpoint])
        #expect(report.attempts.map(\.succeeded) == [true])
        #expect(report.attempts.allSatisfy { $0.error == nil && $0.duration != nil })
        #expect(report.duration >= report.attempts[0].start)
        connection.abort()
        #expect(connection.establishmentReport?.attempts.count == 1)
    }

    @Test("the establishment report of a name with a refused address and a good one")
    func name() async throws {
        let port = try StreamPort()
        // The port is bound on 127.0.0.1 only.
        let refused = try IPAddress(parsing: "127.0.0.2")
        let good = try IPAddress(parsing: "127.0.0.1")
        let connection = Connection(
            to: .hostPort(host: .name("Towpath.Test"), port: port.port),
            parameters: Parameters().resolve("towpath.test", to: [refused, good])
        ) { TCP() }
        try await connection.start()
        let report = try #require(connection.establishmentReport)
        #expect(report.resolutions.allSatisfy { $0.source == .parameters })
        #expect(report.resolutions.flatMap(\.addresses) == [refused, good])
        #expect(report.attempts.map(\.succeeded) == [false, true])
        #expect(report.attempts.map { $0.error?.code } == [.connectionRefused, nil])
        #expect(connection.remoteEndpoint == port.endpoint)
    }

    @Test("the establishment report of a failure")
    func failure() async throws {
        let port = try StreamPort()
        port.close()
        let connection = Connection(to: port.endpoint) { TCP() }
        await #expect(throws: Streams.error(.connectionRefused)) { try await connection.start() }
        let report = try #require(connection.establishmentReport)
        #expect(report.attempts.map { $0.error?.code } == [.connectionRefused])
        #expect(report.attempts.map(\.succeeded) == [false])
    }

    @Test("a connection that was not opened here has no establishment report")
    func none() async throws {
        let (near, far) = try await StreamLink.tcp.pair()
        try await far.send([1])
        #expect(try await near.receive() == [1])
        #expect(far.establishmentReport == nil)
    }

    @Test("the endpoints before, during and after")
    func endpoints() async throws {
        let port = try StreamPort()
        let connection = Connection(to: port.endpoint) { TCP() }
        #expect(connection.localEndpoint == nil)
        #expect(connection.remoteEndpoint == port.endpoint)
        try await connection.start()
        let local = try #require(connection.localEndpoint)
        #expect(local.host == .ipv4(.loopback))
        #expect(local.port != 0)
        let far = try Connection(adopting: try await port.accept().release()) { TCP() }
        #expect(far.remoteEndpoint == local)
        #expect(far.localEndpoint == port.endpoint)
        far.abort()
        await connection.close()
        #expect(connection.localEndpoint == nil)
        #expect(connection.remoteEndpoint == port.endpoint)
    }

    @Test("the endpoints outlive the peer's reset")
    func endpointsAfterReset() async throws {
        let (near, peer) = try await Streams.connected()
        let (local, remote) = (near.localEndpoint, near.remoteEndpoint)
        #expect(remote?.host == .ipv4(.loopback))
        peer.reset()
        await #expect(throws: Streams.error(.connectionReset)) { try await near.receive() }
        #expect(near.localEndpoint == local)
        #expect(near.remoteEndpoint == remote)
    }

    @Test("the endpoints of an adopted connection that the peer has already reset")
    func adoptedAfterReset() async throws {
        let port = try StreamPort()
        let client = try await StreamPeer.connect(to: port.port)
        let accepted = try await port.accept()
        client.reset()
        await #expect(throws: (any Error).self) { try await accepted.receiveAll() }
        #expect(throws: Streams.error(.invalidEndpoint)) {
            try Connection(adopting: accepted.release()) { TCP() }
        }
    }

    @Test("the transfer report counts what went over the connection")
    func transfer() async throws {
        let (near, peer) = try await Streams.connected()
        try await near.send(Streams.pattern(100_000))
        #expect(try await peer.receive(exactly: 100_000).count == 100_000)
        try await peer.send(Streams.pattern(30_000))
        #expect(try await near.receive(exactly: 10_000).count == 10_000)
        try await Streams.until {
            let report = try near.transferReport()
            return report.unacknowledgedByteCount == 0 && report.receivedByteCount == 30_000
        }
        let report = try near.transferReport()
        #expect(report.acknowledgedByteCount >= 100_000)
        #expect(report.acknowledgedByteCount <= 100_001)
        #expect(report.sentByteCount - report.retransmittedByteCount == 100_000)
        #expect(report.unreadByteCount == 20_000)
        #expect(report.unsentByteCount == 0)
        #expect(report.sentSegmentCount > 0 && report.receivedSegmentCount > 0)
        #expect(report.congestionWindow > 0)
        #expect(report.maximumSegmentSize > 500 && report.pathMTU > report.maximumSegmentSize)
        #expect(report.smoothedRoundTripTime > .zero)
        #expect(report.minimumRoundTripTime <= .seconds(60))
    }

    @Test("the transfer report shows what a blocked peer leaves unsent")
    func unsent() async throws {
        let (near, peer) = try await Streams.connected()
        let call = await Streams.parked(on: near) {
            try await near.send([UInt8](repeating: 0, count: Streams.large))
        }
        let report = try near.transferReport()
        #expect(report.unacknowledgedByteCount + report.unsentByteCount > 0)
        call.cancel()
        peer.reset()
    }

    @Test("there is no transfer report without TCP, or before and after")
    func noTransfer() async throws {
        let (near, _) = try Connection.pair()
        #expect(throws: Streams.error(.notSupported)) { try near.transferReport() }
        let port = try StreamPort()
        let connection = Connection(to: port.endpoint) { TCP() }
        #expect(throws: Streams.error(.closed)) { try connection.transferReport() }
        try await connection.start()
        _ = try connection.transferReport()
        connection.abort()
        #expect(throws: Streams.error(.closed)) { try connection.transferReport() }
    }
}
