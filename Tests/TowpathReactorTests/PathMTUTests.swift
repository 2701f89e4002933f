import CTowpathLinux
import Testing
import TowpathReactor

@Suite("Path MTU")
struct PathMTUTests {
    @Test(
        "the largest datagram without fragments goes, and one byte more does not",
        arguments: [SocketAddress.loopback(), .loopback6()])
    func maximum(address: SocketAddress) throws {
        let receiver = try Descriptor.bound(to: address)
        let sender = try Descriptor.socket(address.family, .datagram)
        try sender.set(
            address.family == .ipv4 ? .ipMTUDiscover : .ipv6MTUDiscover,
            to: PathMTUDiscovery.always.rawValue)
        _ = sender.connect(to: try receiver.localAddress())
        let maximum = try sender.maximumDatagramSize()
        #expect(maximum >= 1_200)
        #expect(sender.send([UInt8](repeating: 0, count: maximum + 1)) == .failed(EMSGSIZE))
        #expect(sender.send([UInt8](repeating: 0, count: maximum)) == .done(maximum))
        let other = try Descriptor.pathMaximum(to: receiver.localAddress())
        #expect(other == maximum)
    }

    @Test("a Unix socket takes the datagram it says it takes")
    func unix() throws {
        let ends = try Descriptor.joined(.datagram)
        let maximum = try ends.near.maximumDatagramSize()
        #expect(ends.near.send([UInt8](repeating: 0, count: maximum)) == .done(maximum))
    }

    @Test("an unconnected socket has no path")
    func unconnected() throws {
        let socket = try Descriptor.bound()
        #expect(throws: SystemError(ENOTCONN, "getsockopt(IP_MTU)")) {
            try socket.maximumDatagramSize()
        }
    }

    @Test("where there is no way there is no maximum")
    func unreachable() throws {
        #expect(throws: SystemError.self) {
            try Descriptor.pathMaximum(to: SocketAddress(ipv4: 0xFFFF_FFFF, port: 9))
        }
    }
}
