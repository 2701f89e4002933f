import Glibc
import TestSupport
import Testing
import Towpath

@Suite("UDP listener: peers", .timeLimit(.minutes(1)))
struct DatagramListenerTests {
    /// Answers each datagram with what the connection knows of its ends.
    @Sendable static func reflect(_ connection: Connection<UDP>) async throws {
        for try await datagram in connection.messages {
            #expect(datagram.localEndpoint == connection.localEndpoint)
            #expect(datagram.remoteEndpoint == connection.remoteEndpoint)
            let remote = connection.remoteEndpoint.map { "\($0)" } ?? ""
            let local = connection.localEndpoint.map { "\($0)" } ?? ""
            try await connection.send("\(remote) \(local)".utf8)
        }
    }

    @Test("one connection per remote and local address; answers come from the address asked")
    func addresses() async throws {
        let opened = Inbox<Endpoint?>()
        try await Listener.serving(on: .port(0)) { connection in
            opened.send(connection.localEndpoint)
            try await Self.reflect(connection)
        } while: { listener in
            let asked: [Endpoint] = [
                .udp4(listener.port), .udp("127.0.0.2", listener.port), .udp6(listener.port),
            ]
            for peer in [try DatagramSocket(.udp("0.0.0.0")), try DatagramSocket(.udp("0.0.0.0"))] {
                let peer6 = try DatagramSocket(.udp6())
                for endpoint in asked {
                    let socket = endpoint.domain == AF_INET ? peer : peer6
                    for _ in 0..<2 {
                        try socket.send([1], to: endpoint)
                        let (bytes, sender) = try await socket.receive()
                        #expect(sender == endpoint)
                        let port = try #require(try socket.endpoint.port)
                        let own: Endpoint = endpoint.domain == AF_INET ? .udp4(port) : .udp6(port)
                        #expect(String(decoding: bytes, as: UTF8.self) == "\(own) \(endpoint)")
                    }
                }
            }
            #expect(try await opened.next(6) == asked + asked)
            #expect(listener.connectionCount == 6)
        }
    }

    @Test("BR-014: an IPv4 peer of a dual-stack listener is a plain IPv4 endpoint, of use anywhere")
    func mapped() async throws {
        try await Listener.serving(on: .port(0)) { connection in
            let datagram = try await connection.receive()
            let remote = try #require(datagram?.remoteEndpoint)
            #expect(connection.remoteEndpoint == remote)
            #expect(remote.normalized == remote)
            try await connection.send("reply".utf8)
            let fresh = Connection(to: remote) { UDP() }
            try await fresh.send("fresh".utf8)
            #expect(try connection.maximumDatagramSize == fresh.maximumDatagramSize)
            await fresh.close()
        } while: { listener in
            let peer = try DatagramSocket()
            try peer.send([1], to: .udp4(listener.port))
            let (reply, sender) = try await peer.receive()
            #expect(reply == Array("reply".utf8))
            #expect(sender == .udp4(listener.port))
            #expect(try await peer.receive().bytes == Array("fresh".utf8))
        }
    }

    @Test("BR-014: a mapped endpoint is connected to as the IPv4 one it is")
    func mappedTarget() async throws {
        let peer = try DatagramSocket()
        let mapped = Endpoint.udp("::ffff:127.0.0.1", try #require(try peer.endpoint.port))
        let connection = Connection(to: mapped) { UDP() }
        try await connection.send([1] as [UInt8])
        #expect(try await peer.receive().bytes == [1])
        #expect(connection.remoteEndpoint == (try peer.endpoint))
    }

    @Test("BR-014: with IPv6 only, a listener leaves IPv4 to somebody else")
    func ipv6Only() async throws {
        let parameters = Parameters().ipv6Only(true)
        try await Listener.serving(on: .port(0), parameters: parameters, handler: echoDatagrams) {
            listener in
            let other = try DatagramSocket(.udp4(listener.port))
            let peer = try DatagramSocket()
            try peer.send([4], to: .udp4(listener.port))
            #expect(try await other.receive().bytes == [4])
            let peer6 = try DatagramSocket(.udp6())
            try peer6.send([6], to: .udp6(listener.port))
            #expect(try await peer6.receive().bytes == [6])
            #expect(listener.connectionCount == 1)
        }
    }

    @Test("all kinds of datagrams reach a peer's connection: empty, largest, truncated")
    func kinds() async throws {
        let log = Inbox<Datagram>()
        try await Listener.serving(UDP().maximumReceiveSize(60_000).receiveTime(true)) {
            for try await datagram in $0.messages { log.send(datagram) }
        } while: { listener in
            let peer = try DatagramSocket()
            try peer.set(Int32(IPPROTO_IP), IP_TOS, 3)
            for size in [0, 60_000, 65_507, 3] {
                try peer.send(DatagramProbe.pattern(size), to: listener.localEndpoint)
                let datagram = try await log.next()
                #expect(datagram.bytes == DatagramProbe.pattern(min(size, 60_000)))
                #expect(datagram.isTruncated == (size > 60_000))
                #expect(datagram.ecn == .congestionExperienced)
                #expect(datagram.receiveTime != nil)
            }
        }
    }

    @Test(
        "congestion is told for IPv4 and IPv6 on a dual-stack listener", arguments: [false, true])
    func ecn(isIPv6: Bool) async throws {
        let log = Inbox<Datagram.ECN>()
        try await Listener.serving(on: .port(0)) {
            for try await datagram in $0.messages { log.send(datagram.ecn) }
        } while: { listener in
            let peer = try DatagramSocket(isIPv6 ? .udp6() : .udp4())
            for ecn in [1, 2, 3, 0] as [Int32] {
                try peer.set(
                    Int32(isIPv6 ? IPPROTO_IPV6 : IPPROTO_IP), isIPv6 ? IPV6_TCLASS : IP_TOS, ecn)
                try peer.send([1], to: isIPv6 ? .udp6(listener.port) : .udp4(listener.port))
                #expect(try await log.next().rawValue == UInt8(ecn))
            }
        }
    }

    @Test("what the kernel joined comes to the handler one by one", arguments: [false, true])
    func joined(isIPv6: Bool) async throws {
        let log = Inbox<[UInt8]>()
        try await Listener.serving(on: .port(0)) {
            for try await datagram in $0.messages { log.send(datagram.bytes) }
        } while: { listener in
            #expect(
                try DatagramProbe.option(
                    DatagramOffload.level, DatagramOffload.receive, at: listener.localEndpoint)
                    == 1)
            let peer = try DatagramSocket(isIPv6 ? .udp6() : .udp4())
            try peer.set(DatagramOffload.level, DatagramOffload.segment, 100)
            let sent = DatagramProbe.pattern(2_050)
            try peer.send(sent, to: isIPv6 ? .udp6(listener.port) : .udp4(listener.port))
            let expected = stride(from: 0, to: 2_050, by: 100).map {
                Array(sent[$0..<min($0 + 100, 2_050)])
            }
            #expect(try await log.next(21) == expected)
        }
    }

    @Test("many more datagrams than one batch holds all arrive, each peer's in order")
    func batches() async throws {
        let log = Inbox<(Endpoint?, UInt8)>()
        let listener = try await Listener(on: .udp4()) { UDP() }
        let peers = try (0..<4).map { _ in try DatagramSocket() }
        // They wait in the kernel: nobody accepts yet, so the loop takes them all at once.
        for number in 0..<40 as Range<UInt8> {
            for peer in peers { try peer.send([number], to: listener.localEndpoint) }
        }
        let running = Task {
            try await listener.run { connection in
                for try await datagram in connection.messages {
                    log.send((connection.remoteEndpoint, datagram.bytes[0]))
                }
            }
        }
        var received: [Endpoint?: [UInt8]] = [:]
        for (remote, number) in try await log.next(160) {
            received[remote, default: []].append(number)
        }
        for peer in peers { #expect(received[try peer.endpoint] == Array(0..<40)) }
        #expect(listener.connectionCount == 4)
        listener.close()
        try await running.value
    }

    @Test("the refusal by one peer's host does not disturb the others")
    func refusal() async throws {
        try await Listener.serving { connection in
            for try await datagram in connection.messages {
                for _ in 0..<datagram.bytes[0] { try await connection.send(datagram.bytes) }
            }
        } while: { listener in
            let stays = try DatagramSocket()
            for _ in 0..<10 {
                var leaves: DatagramSocket? = try DatagramSocket()
                try leaves?.send([3], to: listener.localEndpoint)
                leaves = nil
                try stays.send([2], to: listener.localEndpoint)
                #expect(try await stays.receive(count: 2) == [[2], [2]])
            }
            #expect(!stays.hasInput)
        }
    }
}
