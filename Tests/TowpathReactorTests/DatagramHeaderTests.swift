import CTowpathLinux
import Testing
import TowpathReactor

/// Control messages: ip(7), ipv6(7), socket(7).
@Suite("Datagram batch: headers")
struct DatagramHeaderTests {
    @Test("without its options a header holds nothing but the remote address")
    func plain() throws {
        let receiver = try Descriptor.bound()
        _ = try Descriptor.sender(to: receiver).send([1])
        let header = try receiver.receiveDatagram().header
        #expect(header.local == nil)
        #expect(header.trafficClass == 0)
        #expect(header.receiveTime == nil)
        #expect(header.segmentSize == nil)
    }

    @Test("a server on all addresses knows which was asked and answers from it")
    func local4() throws {
        let server = try Descriptor.bound(to: SocketAddress(ipv4: 0, port: 0))
        try server.set(.ipPacketInfo, to: 1)
        let port = try server.localAddress().port
        for address in [0x7F00_0001, 0x7F00_0005, 0x7F01_0203] as [UInt32] {
            let client = try Descriptor.bound()
            let asked = SocketAddress(ipv4: address, port: port)
            #expect(client.sendDatagram([1], DatagramRoute(remote: asked, local: nil)) == .done(1))
            let header = try server.receiveDatagram().header
            let local = try #require(header.local)
            #expect(local.isIPv4)
            #expect(local.address(port: port) == asked)
            let route = DatagramRoute(remote: header.sender, local: local)
            #expect(server.sendDatagram([2], route) == .done(1))
            let answer = try client.receiveDatagram()
            #expect(answer.bytes == [2])
            #expect(answer.header.sender == asked)
        }
    }

    @Test("a server on all IPv6 addresses knows which was asked and answers from it")
    func local6() throws {
        let server = try Descriptor.socket(.ipv6, .datagram)
        try server.set(.ipv6Only, to: 1)
        try server.set(.ipv6ReceivePacketInfo, to: 1)
        try server.bind(to: SocketAddress(ipv6High: 0, low: 0, scope: 0, port: 0))
        let asked = SocketAddress.loopback6(port: try server.localAddress().port)
        let client = try Descriptor.bound(to: .loopback6())
        #expect(client.sendDatagram([1], DatagramRoute(remote: asked, local: nil)) == .done(1))
        let header = try server.receiveDatagram().header
        let local = try #require(header.local)
        #expect(!local.isIPv4)
        #expect(local.interface == 0)
        #expect(local.address(port: asked.port) == asked)
        let route = DatagramRoute(remote: header.sender, local: local)
        #expect(server.sendDatagrams([[2], [3]], route) == .done(2))
        let answers = try client.receiveDatagrams()
        #expect(answers.map(\.bytes) == [[2], [3]])
        #expect(answers.map(\.header.sender) == [asked, asked])
    }

    @Test("a dual-stack server sees IPv4 as mapped addresses and answers from the one asked")
    func mapped() throws {
        let server = try Descriptor.socket(.ipv6, .datagram)
        try server.set(.ipv6Only, to: 0)
        try server.set(.ipv6ReceivePacketInfo, to: 1)
        try server.bind(to: SocketAddress(ipv6High: 0, low: 0, scope: 0, port: 0))
        let port = try server.localAddress().port
        let client = try Descriptor.bound()
        let asked = SocketAddress(ipv4: 0x7F00_0007, port: port)
        #expect(client.sendDatagram([1], DatagramRoute(remote: asked, local: nil)) == .done(1))
        let header = try server.receiveDatagram().header
        let clientPort = try client.localAddress().port
        #expect(header.sender == .mapped(0x7F00_0001, port: clientPort))
        let local = try #require(header.local)
        #expect(local.address(port: port) == .mapped(0x7F00_0007, port: port))
        let route = DatagramRoute(remote: header.sender, local: local)
        #expect(server.sendDatagram([2], route) == .done(1))
        #expect(server.sendDatagram([3, 4], route, segmentSize: 1) == .done(2))
        for expected in [[2], [3], [4]] as [[UInt8]] {
            let answer = try client.receiveDatagram()
            #expect(answer.bytes == expected)
            #expect(answer.header.sender == asked)
        }
    }

    @Test("a link-local address keeps its interface", .enabled(if: LinkLocal.first != nil))
    func linkLocal() throws {
        let address = try #require(LinkLocal.first)
        let server = try Descriptor.socket(.ipv6, .datagram)
        try server.set(.ipv6ReceivePacketInfo, to: 1)
        try server.bind(to: SocketAddress(ipv6High: 0, low: 0, scope: 0, port: 0))
        let port = try server.localAddress().port
        let client = try Descriptor.socket(.ipv6, .datagram)
        try client.bind(to: address(port: 0))
        let route = DatagramRoute(remote: address(port: port), local: nil)
        #expect(client.sendDatagram([1], route) == .done(1))
        let header = try server.receiveDatagram().header
        let local = try #require(header.local)
        #expect(local.interface == address.interface)
        #expect(local.address(port: port) == address(port: port))
        let answer = DatagramRoute(remote: header.sender, local: local)
        #expect(server.sendDatagram([2], answer) == .done(1))
        #expect(try client.receiveDatagram().header.sender == address(port: port))
    }

    @Test("the ECN mark and the class of an IPv4 datagram arrive", arguments: [0, 1, 2, 3, 0xB8])
    func typeOfService(value: Int32) throws {
        let receiver = try Descriptor.bound()
        try receiver.set(.ipReceiveTypeOfService, to: 1)
        let sender = try Descriptor.sender(to: receiver)
        try sender.set(.ipTypeOfService, to: value)
        _ = sender.send([1])
        #expect(try receiver.receiveDatagram().header.trafficClass == UInt8(value))
    }

    @Test("the ECN mark and the class of an IPv6 datagram arrive", arguments: [0, 1, 2, 3, 0xB8])
    func trafficClass(value: Int32) throws {
        let receiver = try Descriptor.bound(to: .loopback6())
        try receiver.set(.ipv6ReceiveTrafficClass, to: 1)
        let sender = try Descriptor.sender(to: receiver)
        try sender.set(.ipv6TrafficClass, to: value)
        _ = sender.send([1])
        #expect(try receiver.receiveDatagram().header.trafficClass == UInt8(value))
    }

    @Test("the class of an IPv4 datagram arrives at a dual-stack socket")
    func mappedTypeOfService() throws {
        let receiver = try Descriptor.socket(.ipv6, .datagram)
        try receiver.set(.ipv6Only, to: 0)
        try receiver.set(.ipReceiveTypeOfService, to: 1)
        try receiver.set(.ipv6ReceiveTrafficClass, to: 1)
        try receiver.bind(to: SocketAddress(ipv6High: 0, low: 0, scope: 0, port: 0))
        let sender = try Descriptor.socket(.ipv4, .datagram)
        _ = sender.connect(to: .loopback(port: try receiver.localAddress().port))
        try sender.set(.ipTypeOfService, to: 3)
        _ = sender.send([1])
        #expect(try receiver.receiveDatagram().header.trafficClass == 3)
    }

    @Test("each datagram has the time of its arrival")
    func receiveTime() throws {
        let receiver = try Descriptor.bound()
        try receiver.set(.timestamps, to: 1)
        let sender = try Descriptor.sender(to: receiver)
        for _ in 0..<3 { _ = sender.send([1]) }
        let times = try receiver.receiveDatagrams().map(\.header.receiveTime)
        // Later than the year 2020: nanoseconds of the real-time clock, not of another.
        for time in times { #expect(try #require(time) > 1_577_836_800_000_000_000) }
        #expect(times.count == 3)
    }

    @Test("all at once: address, class, time and segment size find room")
    func everything() throws {
        let receiver = try Descriptor.bound(to: .loopback6())
        for option in [
            SocketOption.ipv6ReceivePacketInfo, .ipv6ReceiveTrafficClass, .timestamps,
            .udpReceiveOffload,
        ] {
            try receiver.set(option, to: 1)
        }
        let sender = try Descriptor.sender(to: receiver)
        try sender.set(.ipv6TrafficClass, to: 2)
        let bytes = [UInt8](repeating: 1, count: 2_000)
        #expect(sender.sendDatagram(bytes, segmentSize: 1_000) == .done(2_000))
        let received = try receiver.receiveDatagram()
        #expect(received.bytes.count == 2_000)
        #expect(received.header.local != nil)
        #expect(received.header.trafficClass == 2)
        #expect(received.header.receiveTime != nil)
        #expect(received.header.segmentSize == 1_000)
    }
}

/// A link-local address of this host, from /proc/net/if_inet6.
private struct LinkLocal {
    let low: UInt64
    let interface: UInt32

    static var first: LinkLocal? {
        for line in read("/proc/net/if_inet6").split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count == 6, fields[0].hasPrefix("fe80"),
                let low = UInt64(fields[0].suffix(16), radix: 16),
                let interface = UInt32(fields[1], radix: 16)
            else { continue }
            return LinkLocal(low: low, interface: interface)
        }
        return nil
    }

    func callAsFunction(port: UInt16) -> SocketAddress {
        SocketAddress(ipv6High: 0xFE80 << 48, low: low, scope: interface, port: port)
    }
}
