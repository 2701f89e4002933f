import CTowpathLinux
import Testing
import TowpathReactor

@Suite("Socket address")
struct SocketAddressTests {
    @Test(
        "an IPv4 address comes back as it was given",
        arguments: [(0, 0), (0x7F00_0001, 80), (0xC000_0201, 443), (0xFFFF_FFFF, 65_535)]
            as [(UInt32, UInt16)])
    func ipv4(address: UInt32, port: UInt16) {
        let socketAddress = SocketAddress(ipv4: address, port: port)
        #expect(socketAddress.family == .ipv4)
        #expect(socketAddress.domain == AF_INET)
        #expect(socketAddress.length == 16)
        #expect(socketAddress.ipv4 == address)
        #expect(socketAddress.port == port)
        #expect(socketAddress.unix == nil)
    }

    @Test(
        "an IPv6 address comes back as it was given",
        arguments: [
            (0, 0, 0, 0), (0, 1, 0, 80), (0xFE80 << 48, 0x0123_4567_89AB_CDEF, 3, 443),
            (.max, .max, .max, 65_535),
        ] as [(UInt64, UInt64, UInt32, UInt16)])
    func ipv6(high: UInt64, low: UInt64, scope: UInt32, port: UInt16) {
        let address = SocketAddress(ipv6High: high, low: low, scope: scope, port: port)
        #expect(address.family == .ipv6)
        #expect(address.domain == AF_INET6)
        #expect(address.length == 28)
        #expect(address.ipv6 == (high, low, scope))
        #expect(address.port == port)
        #expect(address.unix == nil)
    }

    @Test("the bytes of an IP address lie in the order of the network")
    func byteOrder() {
        let four = SocketAddress(ipv4: 0x0102_0304, port: 0x0506)
        withUnsafeBytes(of: four.storage) { #expect(Array($0[2..<8]) == [5, 6, 1, 2, 3, 4]) }
        let six = SocketAddress(
            ipv6High: 0x0001_0203_0405_0607, low: 0x0809_0A0B_0C0D_0E0F, scope: 0, port: 0x0506)
        withUnsafeBytes(of: six.storage) {
            #expect(Array($0[2..<4]) == [5, 6])
            #expect(Array($0[8..<24]) == Array(0...15))
        }
    }

    @Test(
        "a Unix name comes back as it was given, of a file or abstract",
        arguments: [Array("/run/app.sock".utf8), [0x78], Array(repeating: 0x61, count: 107)],
        [false, true])
    func unix(name: [UInt8], abstract: Bool) throws {
        let address = try #require(SocketAddress(unix: name, abstract: abstract))
        #expect(address.family == .unix)
        #expect(address.domain == AF_UNIX)
        #expect(Int(address.length) == 2 + name.count + 1)
        let parsed = try #require(address.unix)
        #expect(parsed.name == name)
        #expect(parsed.abstract == abstract)
        #expect(address.port == 0)
        #expect(address.compact == nil)
    }

    @Test("an abstract name may hold NUL bytes")
    func abstractNul() throws {
        let address = try #require(SocketAddress(unix: [0, 1, 0], abstract: true))
        #expect(address.unix?.name == [0, 1, 0])
    }

    @Test("a Unix name that is empty or longer than 107 bytes is none", arguments: [false, true])
    func unixLimits(abstract: Bool) {
        #expect(SocketAddress(unix: [], abstract: abstract) == nil)
        let name = [UInt8](repeating: 0x61, count: 108)
        #expect(SocketAddress(unix: name, abstract: abstract) == nil)
    }

    @Test("the kernel gives an abstract name back as it was bound", arguments: [8, 50, 107])
    func kernelAbstract(count: Int) throws {
        var random = SystemRandomNumberGenerator()
        let name = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
        let address = try #require(SocketAddress(unix: name, abstract: true))
        let socket = try Descriptor.socket(.unix, .stream)
        try socket.bind(to: address)
        #expect(try socket.localAddress() == address)
    }

    @Test("the kernel gives a file's name back, 107 bytes of it and 108", arguments: [107, 108])
    func kernelPath(count: Int) throws {
        try withTemporaryDirectory { directory in
            var path = Array(directory.utf8) + [UInt8(ascii: "/")]
            path += [UInt8](repeating: 0x61, count: count - path.count)
            var raw = sockaddr_storage()
            raw.ss_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &raw) { $0[2...].copyBytes(from: path) }
            let listener = try Descriptor.socket(.unix, .stream)
            #expect(shim_bind(listener.number, &raw, socklen_t(2 + count)) == 0)
            let name = try #require(try listener.localAddress().unix)
            #expect(name.name == path)
            #expect(!name.abstract)
        }
    }

    @Test("a Unix socket without a name has none")
    func unnamed() throws {
        let ends = try Descriptor.joined()
        let address = try ends.near.localAddress()
        #expect(address.family == .unix)
        #expect(address.unix == nil)
    }

    @Test("equal addresses have equal hashes; any difference tells")
    func hash() throws {
        let addresses = [
            SocketAddress(ipv4: 1, port: 1), SocketAddress(ipv4: 1, port: 2),
            SocketAddress(ipv4: 2, port: 1),
            SocketAddress(ipv6High: 0, low: 1, scope: 0, port: 1),
            SocketAddress(ipv6High: 0, low: 1, scope: 1, port: 1),
            SocketAddress(ipv6High: 1, low: 0, scope: 0, port: 1),
            try #require(SocketAddress(unix: [0x61], abstract: false)),
            try #require(SocketAddress(unix: [0x61], abstract: true)),
            try #require(SocketAddress(unix: [0x61, 0x61], abstract: true)),
        ]
        #expect(Set(addresses + addresses).count == addresses.count)
        for (left, right) in zip(addresses, addresses) { #expect(left == right) }
    }

    @Test("an address that the kernel reports equals the one it was made from")
    func kernelEquality() throws {
        for address in [SocketAddress.loopback(), .loopback6()] {
            let socket = try Descriptor.bound(to: address)
            let reported = try socket.localAddress()
            let made =
                address.family == .ipv4
                ? SocketAddress.loopback(port: reported.port) : .loopback6(port: reported.port)
            #expect(reported == made)
            #expect(reported.hashValue == made.hashValue)
        }
    }

    @Test("a compact address is the same address in 24 bytes")
    func compact() throws {
        #expect(MemoryLayout<SocketAddress.Compact>.size <= 24)
        for address in [
            SocketAddress(ipv4: 0xC000_0201, port: 443),
            SocketAddress(ipv6High: 0xFE80 << 48, low: 7, scope: 2, port: 65_535),
        ] {
            let compact = try #require(address.compact)
            #expect(SocketAddress(compact) == address)
            #expect(compact.family == address.family)
        }
    }

    @Test("an IPv4 address and its mapped form differ, compact too")
    func mapped() {
        let plain = SocketAddress.loopback(port: 1)
        let mapped = SocketAddress.mapped(0x7F00_0001, port: 1)
        #expect(plain != mapped)
        #expect(plain.compact != mapped.compact)
    }

    @Test("an interface is known by its name and by its number")
    func interface() throws {
        let index = try #require(SocketAddress.interfaceIndex(of: "lo"))
        #expect(SocketAddress.interfaceName(of: index) == "lo")
        #expect(SocketAddress.interfaceIndex(of: String(index)) == index)
        #expect(SocketAddress.interfaceIndex(of: "no-such-interface") == nil)
        #expect(SocketAddress.interfaceIndex(of: "") == nil)
        #expect(SocketAddress.interfaceName(of: 0x7FFF_FFFF) == "2147483647")
    }
}
