import Testing
import TowpathWire

@Suite("RTM_NEWROUTE and RTM_DELROUTE")
struct RouteMessageTests {
    private typealias Hop = RouteMessage.Hop

    private func new(_ route: RouteMessage) -> RouteNetlink { .newRoute(route, replaces: false) }

    @Test("the main table of IPv4")
    func table4() throws {
        let routes = try [
            RouteMessage(.ipv4, priority: 100, hops: [Hop(10, "192.0.2.1")]),
            RouteMessage(.ipv4, to: "192.0.2.0", 24, from: "192.0.2.2", hops: [Hop(10)]),
            RouteMessage(.ipv4, to: "203.0.113.0", 24, from: "203.0.113.2", hops: [Hop(11)]),
        ]
        #expect(try contents(of: Kernel.routes4) == routes.map(new) + [.done(errno: 0)])
    }

    @Test("the main table of IPv6, with what expires")
    func table6() throws {
        func link(_ text: String, _ index: UInt32, expires: UInt32? = nil) throws -> RouteMessage {
            try RouteMessage(.ipv6, to: text, 64, priority: 256, hops: [Hop(index)]) {
                $0.expires = expires
            }
        }
        let routes = try [
            link("2001:db8::", 10), link("2001:db8::", 11, expires: 98), link("2001:db8:1::", 11),
            link("fe80::", 10), link("fe80::", 11),
            RouteMessage(.ipv6, priority: 1_024, hops: [Hop(10, "fe80::1")]) { $0.expires = 599 },
        ]
        #expect(try contents(of: Kernel.routes6) == routes.map(new) + [.done(errno: 0)])
    }

    @Test("an unreachable default of IPv6 leads to the loopback, which is no way")
    func unreachable6() throws {
        let routes = try [
            RouteMessage(.ipv6, priority: 10, hops: [Hop(1)]) { $0.kind = .unreachable },
            RouteMessage(.ipv6, priority: 1_024, hops: [Hop(10, "fe80::1")]) { $0.expires = 599 },
        ]
        #expect(try contents(of: Kernel.withUnreachable6) == routes.map(new) + [.done(errno: 0)])
    }

    @Test("a default comes, a better one too, with a source, and goes")
    func events() throws {
        let first = try RouteMessage(.ipv4, priority: 100, hops: [Hop(10, "192.0.2.1")])
        let second = try RouteMessage(
            .ipv4, priority: 50, from: "203.0.113.2", hops: [Hop(11, "203.0.113.1")])
        #expect(try content(of: Kernel.default4) == new(first))
        #expect(try content(of: Kernel.default4Second) == new(second))
        #expect(try content(of: Kernel.removed4) == .removedRoute(second))
    }

    @Test("R-23: NLM_F_REPLACE says that another route went without a word")
    func replaced() throws {
        let route = try RouteMessage(.ipv4, priority: 100, hops: [Hop(10, "192.0.2.9")])
        #expect(try content(of: Kernel.replaced4) == .newRoute(route, replaces: true))
        #expect(try content(of: Kernel.default4) != content(of: Kernel.replaced4))
    }

    @Test("a route for a time, in seconds")
    func expiring() throws {
        let route = try RouteMessage(.ipv6, priority: 1_024, hops: [Hop(10, "fe80::1")]) {
            $0.expires = 600
        }
        #expect(try content(of: Kernel.expiring6) == new(route))
    }

    @Test("every way of a route with several, by themselves and by a group of nexthop objects")
    func multipath() throws {
        let four = try [Hop(10, "192.0.2.1"), Hop(11, "203.0.113.1")]
        #expect(try content(of: Kernel.multipath4) == new(RouteMessage(.ipv4, hops: four)))
        #expect(try content(of: Kernel.entryMultipath4) == new(RouteMessage(.ipv4, hops: four)))
        #expect(try content(of: Kernel.entryNexthopGroup4) == new(RouteMessage(.ipv4, hops: four)))
        let six = try RouteMessage(
            .ipv6, priority: 1_024, hops: [Hop(10, "fe80::1"), Hop(11, "fe80::2")])
        #expect(try content(of: Kernel.multipath6) == new(six))
    }

    @Test("which ways have no carrier or are switched off")
    func brokenWays() throws {
        var hops = try [Hop(10, "192.0.2.1"), Hop(11, "203.0.113.1", flags: .linkDown)]
        let first = try content(of: Kernel.entryMultipathLinkDown4)
        #expect(try first == new(RouteMessage(.ipv4, hops: hops)))
        hops[0].flags = [.dead, .linkDown]
        let second = try content(of: Kernel.entryMultipathDead4)
        #expect(try second == new(RouteMessage(.ipv4, hops: hops)))
    }

    @Test("a nexthop object comes, a route by it, and with the object the route goes silently")
    func nexthop() throws {
        let route = try RouteMessage(.ipv4, hops: [Hop(10, "192.0.2.1")])
        #expect(try contents(of: Kernel.nexthop) == [.nexthop, new(route), .nexthop])
    }

    @Test("IPv4 by way of an IPv6 router, RFC 5549")
    func viaIPv6() throws {
        let route = try RouteMessage(.ipv4, hops: [Hop(11, "fe80::1")])
        #expect(try content(of: Kernel.viaIPv6) == new(route))
        #expect(try content(of: Kernel.entryViaIPv6) == new(route))
    }

    @Test("two halves instead of a default, one without a gateway, and a table above 255")
    func forms() throws {
        let halves = try ["0.0.0.0", "128.0.0.0"].map {
            try RouteMessage(.ipv4, to: $0, 1, hops: [Hop(10, "192.0.2.1")])
        }
        #expect(try contents(of: Kernel.halves) == halves.map(new))
        let onLink = try RouteMessage(.ipv4, hops: [Hop(11)])
        #expect(try content(of: Kernel.entryOnLink4) == new(onLink))
        let far = try RouteMessage(
            .ipv4, table: 1_000, to: "10.0.0.0", 8, hops: [Hop(10, "192.0.2.1")])
        #expect(try contents(of: Kernel.table1000) == [new(far), .done(errno: 0)])
    }

    @Test("the way of a packet has its source, and flags of its own")
    func ways() throws {
        // RTM_F_CLONED is 0x200, RTCF_LOCAL 0x80000000.
        let cloned = RouteMessage.Flags(rawValue: 0x200)
        let four = try RouteMessage(
            .ipv4, to: "1.1.1.1", 32, from: "192.0.2.2",
            hops: [Hop(10, "192.0.2.1", flags: cloned)]
        ) { $0.flags = cloned }
        #expect(try content(of: Kernel.way4) == new(four))
        let six = try RouteMessage(
            .ipv6, to: "2001:7fd::1", 128, priority: 1_024, from: "2001:db8::2",
            hops: [Hop(10, "fe80::1")])
        #expect(try content(of: Kernel.way6) == new(six))
        let flags = RouteMessage.Flags(rawValue: 0x8000_0200)
        let local = try RouteMessage(
            .ipv4, to: "192.0.2.2", 32, from: "192.0.2.2", hops: [Hop(1, flags: flags)]
        ) { ($0.flags, $0.kind) = (flags, .local) }
        #expect(try content(of: Kernel.wayLocal4) == new(local))
    }

    @Test("without an address there is a way, but no source")
    func noAddress() throws {
        let cloned = RouteMessage.Flags(rawValue: 0x200)
        let way = try RouteMessage(.ipv4, to: "1.1.1.1", 32, hops: [Hop(12, flags: cloned)]) {
            $0.flags = cloned
        }
        #expect(try content(of: Kernel.wayNoAddress4) == new(way))
        #expect(
            try content(of: Kernel.entryNoAddress4) == new(RouteMessage(.ipv4, hops: [Hop(12)])))
    }

    @Test(
        "each kind of route",
        arguments: [
            (UInt8(1), RouteMessage.Kind.unicast), (2, .local), (3, .other(3)), (6, .blackhole),
            (7, .unreachable), (8, .prohibit), (9, .throw), (255, .other(255)),
        ])
    func kinds(number: UInt8, kind: RouteMessage.Kind) throws {
        let message = Made.message(24, [2, 0, 0, 0, 254, 0, 0, number] + Made.zeros(4))
        #expect(try content(of: message) == new(RouteMessage(.ipv4) { $0.kind = kind }))
    }

    @Test("a family that is none of the Internet's")
    func otherFamily() throws {
        let message = Made.message(25, [28, 0, 0, 0, 254, 0, 0, 1] + Made.zeros(4))
        let expected = try RouteMessage(.ipv4) { $0.family = nil }
        #expect(try content(of: message) == .removedRoute(expected))
    }

    private func read(_ attributes: [UInt8]) throws -> RouteMessage? {
        let body: [UInt8] = [2, 0, 0, 0, 254, 0, 0, 1] + Made.zeros(4)
        guard case .newRoute(let route, _) = try content(of: Made.message(24, body + attributes))
        else { return nil }
        return route
    }

    @Test(
        "what is left of a lifetime: none is for ever, what is over is 0",
        arguments: [
            (Int32(0), UInt32?.none), (60_000, 600), (99, 0), (-300, 0), (.min, 0),
            (.max, 21_474_836),
        ])
    func lifetimes(hundredths: Int32, seconds: UInt32?) throws {
        let value = Made.zeros(8) + Made.number(hundredths) + Made.zeros(20)
        #expect(try read(Made.attribute(12, value))?.expires == seconds)
    }

    @Test("a way with an IPv6 router among several, and one of none")
    func multipathForms() throws {
        let via = Made.attribute(18, Made.number(UInt16(10)) + [0xFE, 0x80] + Made.zeros(13) + [1])
        let first = Made.number(UInt16(8 + via.count)) + [0, 0] + Made.number(UInt32(7)) + via
        let second = Made.number(UInt16(8)) + [1, 0] + Made.number(UInt32(8))
        let route = try read(Made.attribute(9, first + second))
        #expect(try route?.hops == [Hop(7, "fe80::1"), Hop(8, flags: .dead)])
        #expect(try read(Made.attribute(9, []))?.hops == [])
    }

    @Test(
        "lengths of ways that cannot be are refused",
        arguments: [
            (UInt16(0), NetlinkError.lengthTooSmall(0)), (7, .lengthTooSmall(7)),
            (9, .lengthTooLarge(9, available: 8)),
        ])
    func malformedHops(length: UInt16, error: NetlinkError) {
        #expect(throws: error) {
            try read(Made.attribute(9, Made.number(length) + Made.zeros(6)))
        }
    }

    @Test(
        "values of a wrong size are refused",
        arguments: [
            (UInt16(1), 3), (4, 3), (5, 2), (6, 3), (7, 17), (12, 11), (15, 0), (18, 2), (18, 5),
        ])
    func malformed(type: UInt16, size: Int) {
        #expect(throws: NetlinkError.self) { try read(Made.attribute(type, Made.zeros(size))) }
    }

    @Test("a body that is too short is refused", arguments: [24, 25] as [UInt16])
    func short(type: UInt16) {
        #expect(throws: NetlinkError.truncated(needed: 12, found: 11)) {
            try contents(of: Made.message(type, Made.zeros(11)))
        }
    }
}
