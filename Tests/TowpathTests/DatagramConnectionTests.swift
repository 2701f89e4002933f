import Glibc
import TestSupport
import Testing
import Towpath

@Suite("UDP connection: messages", .timeLimit(.minutes(1)))
struct DatagramConnectionTests {
    @Test("R-07: two datagrams are two messages, and ready is told once")
    func twoMessages() async throws {
        let peer = try DatagramSocket()
        let connection = Connection(to: try peer.endpoint) { UDP() }
        let states = Inbox<ConnectionState>()
        connection.onStateUpdate { states.send($0) }
        try await connection.start()
        let local = try #require(connection.localEndpoint)
        try peer.send([1, 2], to: local)
        try peer.send([3], to: local)
        let first = try #require(try await connection.receive())
        let second = try #require(try await connection.receive())
        #expect([first.bytes, second.bytes] == [[1, 2], [3]])
        try await connection.start()
        await connection.close()
        #expect(try await states.next(4) == [.setup, .preparing, .ready, .cancelled])
    }

    @Test("a datagram says where it came from and where it was sent to", arguments: [false, true])
    func addresses(isIPv6: Bool) async throws {
        let (connection, peer) = try await DatagramProbe.connected(at: isIPv6 ? .udp6() : .udp4())
        try peer.send([1])
        let datagram = try #require(try await connection.receive())
        #expect(datagram.remoteEndpoint == (try peer.endpoint))
        #expect(datagram.remoteEndpoint == connection.remoteEndpoint)
        #expect(datagram.localEndpoint == connection.localEndpoint)
        #expect(!datagram.isTruncated)
        #expect(datagram.receiveTime == nil)
    }

    @Test("a datagram of no bytes is sent and delivered, and is no end")
    func empty() async throws {
        let (connection, peer) = try await DatagramProbe.connected()
        try await connection.send([UInt8]())
        #expect(try await peer.receive().bytes == [])
        try peer.send([])
        try peer.send([1])
        #expect(try await connection.receive()?.bytes == [])
        #expect(try await connection.receive()?.bytes == [1])
    }

    @Test("the largest datagram goes both ways whole", arguments: [false, true])
    func largest(isIPv6: Bool) async throws {
        let (connection, peer) = try await DatagramProbe.connected(at: isIPv6 ? .udp6() : .udp4())
        let large = DatagramProbe.pattern(65_507)
        try await connection.send(large)
        #expect(try await peer.receive().bytes == large)
        try peer.send(large)
        let datagram = try #require(try await connection.receive())
        #expect(datagram.bytes == large)
        #expect(!datagram.isTruncated)
    }

    @Test("BR-011: what is longer than the limit is marked as truncated; 3 bytes then come intact")
    func truncation() async throws {
        let udp = UDP().maximumReceiveSize(2_048)
        let (connection, peer) = try await DatagramProbe.connected(udp)
        let large = DatagramProbe.pattern(65_507)
        try peer.send(large)
        try peer.send([1, 2, 3])
        let first = try #require(try await connection.receive())
        #expect(first.isTruncated)
        #expect(first.bytes == Array(large.prefix(2_048)))
        let second = try #require(try await connection.receive())
        #expect(!second.isTruncated)
        #expect(second.bytes == [1, 2, 3])
    }

    @Test("a datagram of exactly the limit is whole", arguments: [1, 2_048])
    func exactLimit(limit: Int) async throws {
        let (connection, peer) = try await DatagramProbe.connected(UDP().maximumReceiveSize(limit))
        try peer.send(DatagramProbe.pattern(limit))
        try peer.send(DatagramProbe.pattern(limit + 1))
        let whole = try #require(try await connection.receive())
        let cut = try #require(try await connection.receive())
        #expect([whole.bytes.count, cut.bytes.count] == [limit, limit])
        #expect([whole.isTruncated, cut.isTruncated] == [false, true])
    }

    @Test("every kind of argument is sent")
    func arguments() async throws {
        let (connection, peer) = try await DatagramProbe.connected()
        try await connection.send("text".utf8)
        try await connection.send([1, 2] as [UInt8])
        let array: [UInt8] = [3, 4]
        try await connection.send(array.span.bytes)
        #expect(try await peer.receive(count: 3) == [Array("text".utf8), [1, 2], [3, 4]])
    }

    @Test("the messages come in order, and iterating again goes on")
    func messages() async throws {
        let (connection, peer) = try await DatagramProbe.connected()
        for number in 0..<20 as Range<UInt8> { try peer.send([number]) }
        var received: [UInt8] = []
        for try await datagram in connection.messages {
            received += datagram.bytes
            if received.count == 7 { break }
        }
        for try await datagram in connection.messages {
            received += datagram.bytes
            if received.count == 20 { break }
        }
        #expect(received == Array(0..<20))
    }

    @Test("a socket hears nobody but its peer")
    func stranger() async throws {
        let (connection, peer) = try await DatagramProbe.connected()
        let stranger = try DatagramSocket()
        try stranger.send([9], to: try #require(connection.localEndpoint))
        try peer.send([1])
        #expect(try await connection.receive()?.bytes == [1])
    }

    @Test("the largest datagram without fragments is known, and is sent", arguments: [false, true])
    func maximumSize(isIPv6: Bool) async throws {
        let udp = UDP().fragmentation(.prohibited)
        let (connection, peer) = try await DatagramProbe.connected(
            udp, at: isIPv6 ? .udp6() : .udp4())
        let maximum = try connection.maximumDatagramSize
        // Unless somebody changed loopback's MTU; an IPv4 packet has at most 65,535 bytes.
        if DatagramProbe.loopbackMTU == 65_536 {
            #expect(maximum == (isIPv6 ? 65_536 - 48 : 65_507))
        }
        try await connection.send(DatagramProbe.pattern(maximum))
        #expect(try await peer.receive().bytes.count == maximum)
        let error = try await datagramError {
            try await connection.send(DatagramProbe.pattern(maximum + 1))
        }
        #expect(error.code == .messageTooLong)
    }

    @Test("the largest size is not known before the connection is ready, nor after its end")
    func maximumSizeWhenClosed() async throws {
        let peer = try DatagramSocket()
        let connection = Connection(to: try peer.endpoint) { UDP() }
        #expect(sizeError(connection)?.code == .closed)
        try await connection.start()
        #expect(try connection.maximumDatagramSize > 0)
        await connection.close()
        #expect(sizeError(connection)?.code == .closed)
    }

    private func sizeError(_ connection: Connection<UDP>) -> NetworkError? {
        #expect(throws: NetworkError.self) { try connection.maximumDatagramSize }
    }

    @Test("the first use opens the connection", arguments: ["send", "receive", "contentsOf"])
    func firstUse(use: String) async throws {
        let peer = try DatagramSocket()
        let connection = Connection(to: try peer.endpoint) { UDP() }
        switch use {
        case "send": try await connection.send([1] as [UInt8])
        case "contentsOf": try await connection.send(contentsOf: [[1]])
        default:
            let error = try await datagramError {
                _ = try await connection.receive(timeout: .milliseconds(1))
            }
            #expect(error.code == .timedOut)
            await DatagramProbe.eventually { connection.state == .ready }
            return
        }
        #expect(connection.state == .ready)
        #expect(try await peer.receive().bytes == [1])
    }
}
