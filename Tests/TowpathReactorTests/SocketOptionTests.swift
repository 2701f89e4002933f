import CTowpathLinux
import Testing
import TowpathReactor

@Suite("Socket option")
struct SocketOptionTests {
    private static let onStream: [(SocketOption, Int32)] = [
        (.reuseAddress, 1), (.reusePort, 1), (.keepAlive, 1), (.priority, 4), (.timestamps, 1),
        (.noDelay, 1), (.keepIdle, 30), (.keepInterval, 5), (.keepCount, 4), (.userTimeout, 20_000),
        (.notSentLowWater, 16_384), (.fastOpenConnect, 1), (.ipTypeOfService, 0x28),
        (.ipTimeToLive, 7), (.ipMTUDiscover, PathMTUDiscovery.none.rawValue),
        (.ipBindAddressNoPort, 1),
    ]

    private static let onDatagram: [(SocketOption, Int32)] = [
        (.noChecksum, 1), (.ipPacketInfo, 1), (.ipReceiveTypeOfService, 1),
        (.ipMTUDiscover, PathMTUDiscovery.always.rawValue),
    ]

    private static let onIPv6: [(SocketOption, Int32)] = [
        (.ipv6Only, 0), (.ipv6Only, 1), (.ipv6TrafficClass, 0x2A), (.ipv6Hops, 9),
        (.ipv6MTUDiscover, PathMTUDiscovery.always.rawValue), (.ipv6ReceivePacketInfo, 1),
        (.ipv6ReceiveTrafficClass, 1),
    ]

    private func expectSettable(
        _ options: [(SocketOption, Int32)], on socket: borrowing Descriptor
    ) throws {
        for (option, value) in options {
            try socket.set(option, to: value)
            let result = try socket.get(option)
            #expect(result == value, "\(option.name)")
        }
    }

    @Test("what is set on a TCP socket can be got from it")
    func stream() throws {
        try expectSettable(Self.onStream, on: try Descriptor.socket(.ipv4, .stream))
    }

    @Test("what is set on a UDP socket can be got from it")
    func datagram() throws {
        try expectSettable(Self.onDatagram, on: try Descriptor.socket(.ipv4, .datagram))
    }

    @Test("what is set on an IPv6 socket can be got from it")
    func ipv6() throws {
        try expectSettable(Self.onIPv6, on: try Descriptor.socket(.ipv6, .datagram))
    }

    @Test("the kernel doubles the sizes of the buffers, socket(7)")
    func buffers() throws {
        let socket = try Descriptor.socket(.ipv4, .stream)
        for option in [SocketOption.sendBuffer, .receiveBuffer] {
            try socket.set(option, to: 20_000)
            #expect(try socket.get(option) == 40_000, "\(option.name)")
        }
    }

    @Test("a fast open queue belongs to a listener")
    func fastOpen() throws {
        let listener = try Descriptor.listening()
        try listener.set(.fastOpen, to: 5)
        #expect(try listener.get(.fastOpen) == 5)
    }

    @Test("a maximum segment bounds the connection's")
    func maximumSegment() throws {
        let ends = try Descriptor.connected()
        #expect(try ends.near.get(.maximumSegment) > 500)
        let socket = try Descriptor.socket(.ipv4, .stream)
        try socket.set(.maximumSegment, to: 1_000)
    }

    @Test("a socket says of what kind it is")
    func kind() throws {
        let stream = try Descriptor.socket(.ipv6, .stream)
        #expect(try stream.get(.type) == SHIM_SOCK_STREAM)
        #expect(try stream.get(.domain) == AF_INET6)
        #expect(try stream.get(.protocolNumber) == Int32(IPPROTO_TCP))
        #expect(try stream.get(.isListening) == 0)
        #expect(try stream.isType(.stream))
        #expect(try !stream.isType(.datagram))
        let datagram = try Descriptor.socket(.ipv4, .datagram)
        #expect(try datagram.get(.type) == SHIM_SOCK_DGRAM)
        #expect(try datagram.get(.domain) == AF_INET)
        let listener = try Descriptor.listening()
        #expect(try listener.get(.isListening) == 1)
    }

    @Test("the path MTU is known once a socket is connected")
    func mtu() throws {
        let four = try Descriptor.socket(.ipv4, .datagram)
        #expect(throws: SystemError(ENOTCONN, "getsockopt(IP_MTU)")) { try four.get(.ipMTU) }
        _ = four.connect(to: .loopback(port: 9))
        #expect(try four.get(.ipMTU) >= 576)
        let six = try Descriptor.socket(.ipv6, .datagram)
        _ = six.connect(to: .loopback6(port: 9))
        #expect(try six.get(.ipv6MTU) >= 1_280)
    }

    @Test("an option of another family or a value out of range is an error with the option's name")
    func failures() throws {
        let socket = try Descriptor.socket(.unix, .stream)
        #expect(throws: SystemError(EOPNOTSUPP, "setsockopt(TCP_NODELAY)")) {
            try socket.set(.noDelay, to: 1)
        }
        let stream = try Descriptor.socket(.ipv4, .stream)
        #expect(throws: SystemError(EINVAL, "setsockopt(TCP_KEEPIDLE)")) {
            try stream.set(.keepIdle, to: 0)
        }
    }

    @Test("joined reception can be switched on for UDP")
    func offload() throws {
        let socket = try Descriptor.socket(.ipv4, .datagram)
        try socket.set(.udpReceiveOffload, to: 1)
        #expect(try socket.get(.udpReceiveOffload) == 1)
    }

    @Test("a socket is bound to an interface by name, and freed again")
    func interface() throws {
        let socket = try Descriptor.socket(.ipv4, .stream)
        #expect(try socket.boundInterface() == "")
        try socket.bindToInterface("lo")
        #expect(try socket.boundInterface() == "lo")
        try? socket.bindToInterface("")
        #expect(throws: SystemError(ENODEV, "setsockopt(SO_BINDTODEVICE)")) {
            let other = try Descriptor.socket(.ipv4, .stream)
            try other.bindToInterface("nothing0")
        }
    }

    @Test("a connection that resets on close ends in a reset at the peer")
    func reset() throws {
        let ends = try Descriptor.connected()
        ends.far.resetOnClose()
        let near = ends.keepNear()
        try near.wait(for: POLLIN)
        #expect(near.receive() == .failed(ECONNRESET))
    }

    @Test("a Unix peer says who it is")
    func credentials() throws {
        let ends = try Descriptor.joined()
        let credentials = try ends.near.peerCredentials()
        #expect(credentials.pid == getpid())
        #expect(credentials.uid == getuid())
        #expect(credentials.gid == getgid())
    }
}
