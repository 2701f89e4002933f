import Glibc
import Testing
import Towpath

@Suite("UDP connection: options", .timeLimit(.minutes(1)))
struct DatagramOptionTests {
    @Test(
        "who may cut a datagram is told to the kernel", arguments: [false, true],
        [(UDP.Fragmentation.byPath, 1), (.allowed, 0), (.prohibited, 2)]
            as [(UDP.Fragmentation, Int32)])
    func fragmentation(isIPv6: Bool, choice: (UDP.Fragmentation, Int32)) async throws {
        let (connection, _) = try await DatagramProbe.connected(
            UDP().fragmentation(choice.0), at: isIPv6 ? .udp6() : .udp4())
        let value = try DatagramProbe.option(
            isIPv6 ? Int32(IPPROTO_IPV6) : Int32(IPPROTO_IP),
            isIPv6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, at: connection.localEndpoint)
        #expect(value == choice.1)
    }

    @Test("the checksum is left out on IPv4")
    func noChecksum() async throws {
        let (connection, peer) = try await DatagramProbe.connected(UDP().noChecksum(true))
        let noCheck: Int32 = 11
        #expect(
            try DatagramProbe.option(SOL_SOCKET, noCheck, at: connection.localEndpoint) == 1)
        try await connection.send([1] as [UInt8])
        // The kernel does not cut datagrams without a checksum: they are sent one by one.
        let several: [[UInt8]] = [[2, 2], [3, 3], [4]]
        try await connection.send(contentsOf: several)
        #expect(try await peer.receive(count: 4) == [[1]] + several)
    }

    @Test("leaving out the checksum on IPv6 is refused")
    func noChecksum6() async throws {
        let peer = try DatagramSocket(.udp6())
        let connection = Connection(to: try peer.endpoint) { UDP().noChecksum(true) }
        let error = try await datagramError { try await connection.start() }
        #expect(error.code == .optionFailed)
        #expect(error.message.contains("noChecksum"))
        #expect(connection.state == .failed(error))
    }

    @Test(
        "the receive time is told on demand, and does not run backwards", arguments: [false, true])
    func receiveTime(isIPv6: Bool) async throws {
        let (connection, peer) = try await DatagramProbe.connected(
            UDP().receiveTime(true), at: isIPv6 ? .udp6() : .udp4())
        try peer.send([1])
        try peer.send([2])
        let first = try #require(try await connection.receive()?.receiveTime)
        let second = try #require(try await connection.receive()?.receiveTime)
        // 2020: the host's clock is set.
        #expect(first > .seconds(1_577_836_800))
        #expect(second >= first)
    }

    @Test(
        "explicit congestion notification is told", arguments: [false, true],
        [.notCapable, .capable1, .capable0, .congestionExperienced] as [Datagram.ECN])
    func ecn(isIPv6: Bool, ecn: Datagram.ECN) async throws {
        let (connection, peer) = try await DatagramProbe.connected(at: isIPv6 ? .udp6() : .udp4())
        // The upper six bits are the DSCP, which is not the receiver's business.
        let value = Int32(ecn.rawValue) | 46 << 2
        if isIPv6 {
            try peer.set(Int32(IPPROTO_IPV6), IPV6_TCLASS, value)
        } else {
            try peer.set(Int32(IPPROTO_IP), IP_TOS, value)
        }
        try peer.send([1])
        #expect(try await connection.receive()?.ecn == ecn)
    }

    @Test("the service class and the hop limit of a datagram are the parameters'")
    func parameters() async throws {
        let parameters = Parameters().serviceClass(.interactiveVoice).hopLimit(7)
        let (connection, _) = try await DatagramProbe.connected(parameters: parameters)
        let local = connection.localEndpoint
        #expect(try DatagramProbe.option(Int32(IPPROTO_IP), IP_TOS, at: local) == 46 << 2)
        #expect(try DatagramProbe.option(Int32(IPPROTO_IP), IP_TTL, at: local) == 7)
    }

    @Test("the local address and port are the parameters'")
    func localEndpoint() async throws {
        let free = try DatagramClosedPort()
        let port = try #require(free.endpoint.port)
        let wanted = Endpoint.udp("127.0.0.21", port)
        let (connection, peer) = try await DatagramProbe.connected(
            parameters: Parameters().localEndpoint(wanted))
        #expect(connection.localEndpoint == wanted)
        try await connection.send([1] as [UInt8])
        #expect(try await peer.receive().from == wanted)
    }

    @Test(
        "datagrams that the kernel joined come out one by one", arguments: [false, true],
        [1_000, 950])
    func joined(isIPv6: Bool, total: Int) async throws {
        let (connection, peer) = try await DatagramProbe.connected(at: isIPv6 ? .udp6() : .udp4())
        #expect(try receiveOffload(connection) == 1)
        try peer.set(DatagramOffload.level, DatagramOffload.segment, 100)
        let sent = DatagramProbe.pattern(total)
        try peer.send(sent)
        try peer.send([7])
        var received: [[UInt8]] = []
        for try await datagram in connection.messages {
            #expect(!datagram.isTruncated)
            #expect(datagram.remoteEndpoint == connection.remoteEndpoint)
            received.append(datagram.bytes)
            if received.count == 11 { break }
        }
        let expected = stride(from: 0, to: total, by: 100).map {
            Array(sent[$0..<min($0 + 100, total)])
        }
        #expect(received == expected + [[7]])
    }

    @Test("where not every datagram has room, the kernel joins none")
    func notJoined() async throws {
        let (connection, peer) = try await DatagramProbe.connected(UDP().maximumReceiveSize(99))
        #expect(try receiveOffload(connection) == 0)
        try peer.set(DatagramOffload.level, DatagramOffload.segment, 100)
        try peer.send(DatagramProbe.pattern(250))
        for size in [99, 99, 50] {
            let datagram = try #require(try await connection.receive())
            #expect(datagram.bytes.count == size)
            #expect(datagram.isTruncated == (size == 99))
        }
    }

    private func receiveOffload(_ connection: Connection<UDP>) throws -> Int32 {
        try DatagramProbe.option(
            DatagramOffload.level, DatagramOffload.receive, at: connection.localEndpoint)
    }
}

/// SOL_UDP, UDP_SEGMENT and UDP_GRO of <linux/udp.h>.
enum DatagramOffload {
    static let level: Int32 = 17
    static let segment: Int32 = 103
    static let receive: Int32 = 104
}
