import Testing
import TowpathWire

@Suite("RTM_NEWADDR and RTM_DELADDR")
struct AddressMessageTests {
    @Test("the addresses of a list, with scopes and flags")
    func list() throws {
        let expected: [RouteNetlink] = try [
            AddressMessage(1, "127.0.0.1", 8, scope: 254),
            AddressMessage(10, "192.0.2.2", 24),
            AddressMessage(11, "203.0.113.2", 24),
            AddressMessage(1, "::1", 128, scope: 254),
            AddressMessage(10, "2001:db8::dd", 64, flags: 0xC8),
            AddressMessage(10, "2001:db8::2", 64),
            AddressMessage(10, "fe80::ff:fe00:a", 64, scope: 253),
            AddressMessage(11, "2001:db8::de", 64, flags: 0x22),
            AddressMessage(11, "2001:db8:1::2", 64, flags: 0x82),
            AddressMessage(11, "fe80::ff:fe00:b", 64, scope: 253),
        ].map(RouteNetlink.newAddress)
        #expect(try contents(of: Kernel.addresses) == expected + [.done(errno: 0)])
    }

    @Test("on a point-to-point link the own address counts, not the peer's")
    func pointToPoint() throws {
        var own = try AddressMessage(10, "198.51.100.1", 32)
        own.peer = .v4(IPv4Address(198, 51, 100, 2))
        let found = try contents(of: Kernel.pointToPoint)
        #expect(found.count == 6)
        #expect(found.first == .newAddress(own))
        #expect(found[3] == .removedAddress(own))
    }

    @Test("an address that is being checked, and is then found to be unique")
    func tentative() throws {
        let first = try AddressMessage(10, "2001:db8::2", 64, flags: 0xC0)
        let second = try AddressMessage(10, "2001:db8::2", 64)
        #expect(try contents(of: Kernel.tentative) == [.newAddress(first), .newAddress(second)])
        #expect(!first.isUsable)
        #expect(first.isGlobal)
        #expect(second.isUsable)
    }

    @Test("an optimistic address is usable while it is being checked")
    func optimistic() throws {
        let address = try AddressMessage(10, "2001:db8::99", 64, flags: 0xC4)
        #expect(
            try contents(of: Kernel.optimistic) == [.newAddress(address), .removedAddress(address)])
        #expect(address.flags.contains([.tentative, .optimistic]))
        #expect(address.isUsable)
    }

    @Test("another's address is not usable")
    func duplicate() throws {
        let checked = try AddressMessage(10, "2001:db8::dd", 64, flags: 0xC0)
        let duplicate = try AddressMessage(10, "2001:db8::dd", 64, flags: 0xC8)
        #expect(
            try contents(of: Kernel.duplicate) == [.newAddress(checked), .newAddress(duplicate)])
        #expect(duplicate.flags.contains(.duplicate))
        #expect(!duplicate.isUsable)
    }

    @Test("a deprecated address is usable, one of the link is not global")
    func scopes() throws {
        let deprecated = try AddressMessage(1, "2001:db8::1", 64, flags: 0x20)
        #expect(deprecated.flags == .deprecated)
        #expect(deprecated.isUsable)
        #expect(try AddressMessage(1, "fec0::1", 64, scope: AddressMessage.scopeSite).isGlobal)
        #expect(try !AddressMessage(1, "fe80::1", 64, scope: 253).isGlobal)
        #expect(try !AddressMessage(1, "127.0.0.1", 8, scope: 254).isGlobal)
    }

    @Test("the flags of the body count where there is no attribute of them")
    func narrowFlags() throws {
        let body = [2, 24, 0x40, 0] + Made.number(UInt32(5))
        let message = Made.message(20, body + Made.attribute(1, [192, 0, 2, 7]))
        let expected = try AddressMessage(5, "192.0.2.7", 24, flags: 0x40)
        #expect(try content(of: message) == .newAddress(expected))
    }

    @Test("one without an address is read")
    func noAddress() throws {
        guard case .removedAddress(let message) = try content(of: Made.message(21, Made.zeros(8)))
        else {
            Issue.record("no address")
            return
        }
        #expect(message == AddressMessage())
    }

    @Test("bodies, addresses and flags of a wrong size are refused")
    func malformed() {
        #expect(throws: NetlinkError.truncated(needed: 8, found: 7)) {
            try contents(of: Made.message(20, Made.zeros(7)))
        }
        for (type, size) in [(UInt16(1), 5), (2, 0), (8, 3)] {
            #expect(throws: NetlinkError.attributeSize(type: type, size: size)) {
                let attribute = Made.attribute(type, Made.zeros(size))
                return try contents(of: Made.message(20, Made.zeros(8) + attribute))
            }
        }
    }
}
