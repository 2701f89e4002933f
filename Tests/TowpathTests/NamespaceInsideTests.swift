import Foundation
import TestSupport
import Testing
import Towpath

/// The inner halves of `NamespaceTests`: they do nothing but where those run them.
@Suite("Inside a network namespace", .timeLimit(.minutes(1)))
struct NamespaceInsideTests {
    private static let port: UInt16 = 7_007

    private func connection(
        _ addresses: [String], _ timeout: Duration = .seconds(15)
    ) throws -> Connection<TCP> {
        let parameters = Parameters().resolve(
            "host.test", to: try addresses.map { try IPAddress(parsing: $0) })
        return Connection(to: .named("host.test", Self.port), parameters: parameters) {
            TCP().connectionTimeout(timeout)
        }
    }

    /// The report of a connection to a host with one address of each family, IPv4 answering.
    private func raceWithListener() async throws -> EstablishmentReport {
        let target = try EstablishmentTarget(.udp("10.7.0.1", Self.port))
        let connection = try connection(["fd00:7::1", "10.7.0.1"])
        try await connection.start()
        let report = try #require(connection.establishmentReport)
        expectConsistent(report, winner: target.endpoint)
        #expect(report.attempts.count == 2)
        #expect(report.attempts[0].endpoint == .udp("fd00:7::1", Self.port))
        return report
    }

    @Test func insideFarAway() async throws {
        guard NetworkNamespace.isInside() else { return }
        let connection = try connection(["fd00:78::2", "10.78.0.2"])
        try await connection.start()
        let report = try #require(connection.establishmentReport)
        #expect(report.attempts.count == 2)
        #expect(report.attempts.map(\.succeeded).contains(true))
        // There and back: no attempt was given up after 250 ms.
        #expect(report.duration >= .milliseconds(800))
        #expect(report.attempts.allSatisfy { $0.error == nil })
    }

    @Test func insideFastOpen() async throws {
        guard NetworkNamespace.isInside() else { return }
        let tcp = TCP().fastOpen(true)
        let listener = try await Listener(on: .loopback()) { tcp }
        try await serving(listener) { connection in
            try await connection.send("hello".utf8)
            try await echo(connection)
        } while: {
            for text in ["cookie", "first bytes"] {
                let client = listener.client(tcp)
                try await client.send(text.utf8)
                let answer = try await client.receive(exactly: 5 + text.utf8.count)
                #expect(answer == Array("hello\(text)".utf8))
                // SYN with data, ACKs of the greeting and the answer: a handshake takes one more,
                // and the data another.
                if text != "cookie" { #expect(try client.transferReport().sentSegmentCount <= 4) }
            }
            let listening = listener.client(tcp)
            let greeting = try await listening.receive(exactly: 5)
            #expect(greeting == Array("hello".utf8))
            let finished = listener.client(tcp)
            try await finished.finish()
            let rest = try await Streams.collect(finished)
            #expect(rest == Array("hello".utf8))
        }
    }

    @Test func insideBroadcast() async throws {
        guard NetworkNamespace.isInside() else { return }
        try await Listener.serving(on: .port(0), handler: echoDatagrams) { listener in
            for target in ["10.8.0.255", "255.255.255.255"] {
                let peer = try DatagramSocket(.udp("10.8.0.1"))
                var enabled: Int32 = 1
                setsockopt(
                    peer.number, SOL_SOCKET, SO_BROADCAST, &enabled,
                    socklen_t(MemoryLayout<Int32>.size))
                try peer.send([1], to: .udp(target, listener.port))
                let (bytes, sender) = try await peer.receive()
                #expect(bytes == [1])
                #expect(sender?.port == listener.port)
                #expect(sender != .udp(target, listener.port))
            }
        }
    }

    @Test func insideDropped() async throws {
        guard NetworkNamespace.isInside() else { return }
        let report = try await raceWithListener()
        #expect(report.attempts[0].error == nil)
        #expect(report.attempts[0].duration == nil)
        #expect(report.attempts[1].start >= .milliseconds(250))
    }

    @Test func insideRejected() async throws {
        guard NetworkNamespace.isInside() else { return }
        let report = try await raceWithListener()
        #expect(report.attempts[0].error?.code == .connectionRefused)
        #expect(
            report.attempts[1].start >= report.attempts[0].start
                + (report.attempts[0].duration ?? .zero))
    }

    @Test func insideAllDropped() async throws {
        guard NetworkNamespace.isInside() else { return }
        let addresses = ["fd00:7::1", "10.7.0.1", "fd00:7::2", "10.7.0.2"]
        let connection = try connection(addresses, .milliseconds(1_500))
        let error = try await datagramError { try await connection.start() }
        #expect(error.code == .timedOut)
        let report = try #require(connection.establishmentReport)
        #expect(report.attempts.map(\.endpoint) == addresses.map { .udp($0, Self.port) })
        for attempt in report.attempts {
            #expect(error.message.contains("\(attempt.endpoint): no answer"), "\(error.message)")
        }
    }

    @Test func insideNoIPv6() async throws {
        guard NetworkNamespace.isInside() else { return }
        try await Listener.serving(on: .port(0)) { connection in
            let datagram = try await connection.receive()
            let remote = try #require(datagram?.remoteEndpoint)
            try await connection.send("reply".utf8)
            try await Connection(to: remote) { UDP() }.send("fresh".utf8)
            #expect(try connection.maximumDatagramSize > 0)
        } while: { listener in
            let peer = try DatagramSocket()
            try peer.send([1], to: .udp4(listener.port))
            #expect(try await peer.receive().bytes == Array("reply".utf8))
            #expect(try await peer.receive().bytes == Array("fresh".utf8))
        }
    }

    @Test func insideFragmentation() async throws {
        guard NetworkNamespace.isInside() else { return }
        for (endpoint, header) in [(Endpoint.udp4(), 28), (.udp6(), 48)] {
            for choice in [nil, .byPath, .allowed, .prohibited] as [UDP.Fragmentation?] {
                let udp = choice.map { UDP().fragmentation($0) } ?? UDP()
                let (connection, peer) = try await DatagramProbe.connected(udp, at: endpoint)
                #expect(try connection.maximumDatagramSize == 1_500 - header)
                try await connection.send(DatagramProbe.pattern(1_500 - header))
                #expect(try await peer.receive().bytes.count == 1_500 - header)
                let large = DatagramProbe.pattern(1_501 - header)
                if choice == .prohibited {
                    let error = try await datagramError { try await connection.send(large) }
                    #expect(error.code == .messageTooLong)
                } else {
                    try await connection.send(large)
                    #expect(try await peer.receive().bytes == large)
                    // Too large to be cut out of one send: they go one by one.
                    try await connection.send(contentsOf: [large, large, [1]])
                    #expect(try await peer.receive(count: 3) == [large, large, [1]])
                }
                try await connection.send(contentsOf: [[1, 1], [2, 2], [3]])
                #expect(try await peer.receive(count: 3) == [[1, 1], [2, 2], [3]])
            }
        }
    }
}
