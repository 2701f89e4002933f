import Testing
import TowpathReactor

@Suite("Interfaces without netlink")
struct InterfaceListTests {
    @Test("names stand before the colon, below two lines of heading")
    func names() {
        let text = """
            Inter-|   Receive                                                |  Transmit
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets
                lo:  134       2    0    0    0     0          0         0      134       2
            wlp2s0f0:    0       0    0    0    0     0          0         0        0       0
            no colon here
            """
        #expect(InterfaceList.names(in: text) == ["lo", "wlp2s0f0"])
        #expect(InterfaceList.names(in: "").isEmpty)
        #expect(InterfaceList.names(in: "Inter-|\n face |").isEmpty)
    }

    @Test("the lines of if_inet6 give address, prefix, scope and flags; others are left out")
    func ipv6() throws {
        let text = """
            00000000000000000000000000000001 01 80 10 80       lo
            fe8000000000000042a8fffffe000001 02 40 20 c0     eth0
            20010db8000000000000000000000007 02 40 00 20     eth0
            20010db80000000000000000000000 02 40 00 20     eth1
            zz010db8000000000000000000000007 02 40 00 20     eth1
            20010db8000000000000000000000007 02 40 00
            """
        let addresses = InterfaceList.ipv6Addresses(in: text)
        #expect(Set(addresses.keys) == ["lo", "eth0"])
        let link = try #require(addresses["eth0"]?.first)
        #expect(link.address.ipv6.high == 0xFE80_0000_0000_0000)
        #expect(link.prefixLength == 64 && link.scope == 253 && link.flags == 0xC0)
        let global = try #require(addresses["eth0"]?.last)
        #expect(global.scope == 0 && global.flags == 0x20)
        #expect(addresses["lo"]?.first?.scope == 254)
    }

    @Test("this host has a loopback interface with its address")
    func host() throws {
        let loopback = try #require(try InterfaceList().entries.first { $0.name == "lo" })
        #expect(loopback.index == 1)
        #expect(loopback.flags & 0x9 == 0x9)
        #expect(loopback.mtu > 1_500)
        #expect(loopback.addresses.contains { $0.address.ipv4 == 0x7F00_0001 })
    }
}
