import Glibc
import TestSupport
import Testing
import Towpath

/// On this host alone: a hop limit of 0, and interface-local groups of IPv6.
@Suite("Multicast groups", .timeLimit(.minutes(1)))
struct MulticastGroupTests {
    /// A group on loopback. Other tests use the same port only by `port`.
    private func join(
        _ groups: [IPAddress], port: UInt16 = 0, from sources: [IPAddress] = []
    ) throws -> MulticastGroup {
        try MulticastGroup(
            joining: groups, port: port, from: sources, interface: "lo", hopLimit: 0)
    }

    private func v4(_ last: UInt8) -> IPAddress { .v4(IPv4Address(239, 1, 2, last)) }

    @Test("what is sent to a group is heard, with who sent it and to which group")
    func messages() async throws {
        let group = try join([v4(3)])
        #expect(group.interfaces == ["lo"])
        #expect(group.groups == [v4(3)])
        #expect(group.port != 0)
        #expect(group.localEndpoint == .udp("0.0.0.0", group.port))
        try await group.send([1, 2])
        try await group.send([])
        var received: [[UInt8]] = []
        for try await datagram in group.messages {
            #expect(datagram.localEndpoint == .udp("239.1.2.3", group.port))
            #expect(datagram.remoteEndpoint?.port == group.port)
            #expect(!datagram.isTruncated)
            received.append(datagram.bytes)
            if received.count == 2 { break }
        }
        #expect(received == [[1, 2], []])
    }

    @Test("BR-013: two sockets on one port hear their own groups only")
    func isolation() async throws {
        let one = try join([v4(4), v4(5)])
        let other = try join([v4(9)], port: one.port)
        try await other.send([9])
        try await one.send([1])
        // Each group of the first, in turn.
        for address in ["239.1.2.4", "239.1.2.5"] {
            let datagram = try await one.receive()
            #expect(datagram.bytes == [1])
            #expect(datagram.localEndpoint == .udp(address, one.port))
        }
        #expect(try await other.receive().bytes == [9])
        for group in [one, other] {
            let late = try await datagramError {
                _ = try await group.receive(timeout: .milliseconds(1))
            }
            #expect(late.code == .timedOut)
        }
    }

    @Test("a member answers who sent, and sends to one of its groups")
    func reply() async throws {
        let (one, other) = (try join([v4(10), v4(11)]), try join([v4(12)]))
        let third = try join([v4(10)], port: one.port)
        _ = third
        // A plain peer asks; the answer comes back to it alone.
        let peer = try DatagramSocket(.udp("0.0.0.0"))
        try peer.set(Int32(IPPROTO_IP), IP_MULTICAST_TTL, 0)
        try peer.setMulticastInterface("lo")
        try peer.send([7], to: .udp("239.1.2.11", one.port))
        let question = try await one.receive()
        #expect(question.bytes == [7])
        #expect(question.remoteEndpoint?.port == (try peer.endpoint.port))
        try await one.send([8], to: try #require(question.remoteEndpoint))
        let (answer, from) = try await peer.receive()
        #expect(answer == [8])
        #expect(from?.port == one.port)
        try await one.send([10], to: .udp("239.1.2.10", one.port))
        #expect(try await third.receive().bytes == [10])
        #expect(try await one.receive().localEndpoint == .udp("239.1.2.10", one.port))
        // What is sent to its own address is heard too.
        try await other.send([12], to: .udp4(one.port))
    }

    @Test("what is sent to the port of this host is heard")
    func unicast() async throws {
        let group = try join([v4(13)])
        let peer = try DatagramSocket()
        try peer.send([1], to: .udp4(group.port))
        let datagram = try await group.receive()
        #expect(datagram.bytes == [1])
        #expect(datagram.localEndpoint == .udp4(group.port))
        #expect(datagram.remoteEndpoint == (try peer.endpoint))
    }

    @Test("without loopback this host does not hear what it sends")
    func noLoopback() async throws {
        // Not on the loopback interface, where there is no other way to go.
        let silent: MulticastGroup
        do {
            silent = try MulticastGroup(joining: [v4(14)], port: 0, hopLimit: 0, loopback: false)
        } catch {
            skip("multicast without loopback: \(error)")
            return
        }
        let audible = try MulticastGroup(joining: [v4(14)], port: silent.port, hopLimit: 0)
        try await silent.send([1])
        try await audible.send([2])
        #expect(try await silent.receive().bytes == [2])
        #expect(try await audible.receive().bytes == [2])
    }

    @Test("with sources only their datagrams are heard")
    func sources() async throws {
        let wanted = try IPAddress(parsing: "127.0.0.70")
        let group = try join([v4(15)], from: [wanted])
        for (number, address) in [(1, "127.0.0.71"), (2, "127.0.0.70")] as [(UInt8, String)] {
            let peer = try DatagramSocket(.udp(address))
            try peer.set(Int32(IPPROTO_IP), IP_MULTICAST_TTL, 0)
            try peer.setMulticastInterface("lo")
            try peer.send([number], to: .udp("239.1.2.15", group.port))
        }
        let datagram = try await group.receive()
        #expect(datagram.bytes == [2])
        #expect(datagram.remoteEndpoint?.host?.address == wanted)
    }

    @Test("IPv6 groups are heard on every interface that has them, each by itself")
    func ipv6() async throws {
        let address = try IPAddress(parsing: "ff01::7777")
        let group: MulticastGroup
        do { group = try MulticastGroup(joining: [address], port: 0, hopLimit: 0) } catch {
            skip("IPv6 multicast on this host: \(error)")
            return
        }
        let other = try MulticastGroup(
            joining: [IPAddress(parsing: "ff01::7778")], port: group.port, hopLimit: 0)
        try await other.send([9])
        try await group.send([6])
        var zones: Set<String?> = []
        for _ in group.interfaces {
            let datagram = try await group.receive()
            #expect(datagram.bytes == [6])
            guard case .ipv6(let to)? = datagram.localEndpoint?.host else {
                Issue.record("no group")
                continue
            }
            #expect(try to.withZone(nil) == IPv6Address(parsing: "ff01::7777"))
            zones.insert(to.zone)
        }
        #expect(zones == Set(group.interfaces))
        #expect(try await other.receive().bytes == [9])
    }

    @Test("the groups, the interface and the hop limit are checked")
    func refused() async throws {
        func code(_ make: () throws -> MulticastGroup) async throws -> NetworkError.Code {
            try await datagramError { _ = try make() }.code
        }
        let (four, six) = (v4(1), try IPAddress(parsing: "ff15::1"))
        let zoned = try IPAddress(parsing: "ff15::1%lo")
        let plain = try IPAddress(parsing: "192.0.2.1")
        for groups in [[], [plain], [four, six], [zoned]] {
            #expect(try await code { try join(groups) } == .invalidEndpoint)
        }
        #expect(try await code { try join([four], from: [four]) } == .invalidEndpoint)
        #expect(try await code { try join([six], from: [plain]) } == .invalidEndpoint)
        #expect(
            try await code { try MulticastGroup(joining: [four], port: 0, interface: "nosuch0") }
                == .unreachable)
        #expect(
            try await code { try MulticastGroup(joining: [four], port: 0, hopLimit: 256) }
                == .optionFailed)
        let taken = try DatagramSocket(.udp("0.0.0.0"))
        let port = try #require(try taken.endpoint.port)
        #expect(try await code { try join([four], port: port) } == .addressUnavailable)
        let group = try join([four])
        for endpoint in [.named("localhost", 9), .unix("/x"), .udp6(9)] as [Endpoint] {
            let error = try await datagramError { try await group.send([1], to: endpoint) }
            #expect(error.code == .invalidEndpoint)
        }
        let long = try await datagramError { try await group.send(DatagramProbe.pattern(65_508)) }
        #expect(long.code == .messageTooLong)
    }

    @Test("waiting, cancelling and time limits lose nothing; closing ends who waits")
    func waiting() async throws {
        let group = try join([v4(16)])
        for number in 0..<50 as Range<UInt8> {
            let receive = Task { try await group.receive().bytes }
            if number % 2 == 0 { await Task.yield() }
            receive.cancel()
            try await group.send([number])
            let early: [UInt8]? = try? await receive.value
            let bytes: [UInt8]
            if let early { bytes = early } else { bytes = try await group.receive().bytes }
            #expect(bytes == [number])
        }
        let sockets = DatagramProbe.sockets(at: group.localEndpoint)
        let receive = Task { try await datagramError { _ = try await group.receive() }.code }
        await Task.yield()
        group.close()
        #expect(try await receive.value == .closed)
        #expect(try await datagramError { try await group.send([1]) }.code == .closed)
        #expect(!DatagramProbe.isOpen(sockets))
        group.close()
    }

    @Test("one that is dropped leaves its groups")
    func drop() async throws {
        var group: MulticastGroup? = try join([v4(17)])
        let endpoint = try #require(group?.localEndpoint)
        let sockets = DatagramProbe.sockets(at: endpoint)
        #expect(sockets.count == 1)
        group = nil
        await DatagramProbe.eventually { !DatagramProbe.isOpen(sockets) }
    }
}

extension DatagramSocket {
    /// IP_MULTICAST_IF with a struct ip_mreqn.
    func setMulticastInterface(_ name: String) throws {
        var request = ip_mreqn()
        request.imr_ifindex = Int32(if_nametoindex(name))
        let size = socklen_t(MemoryLayout<ip_mreqn>.size)
        guard setsockopt(number, Int32(IPPROTO_IP), IP_MULTICAST_IF, &request, size) == 0 else {
            throw DatagramFailure("setsockopt")
        }
    }
}
