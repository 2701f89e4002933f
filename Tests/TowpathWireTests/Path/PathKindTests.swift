import Testing
import TowpathWire

private func address(_ text: String) throws -> IPAddress { try IPAddress(parsing: text) }

/// Kinds of interfaces that few kernels have all of, from messages as rtnetlink(7) and the kernel's
/// drivers lay them out: bonds, teams, VLANs, WireGuard, wireless cards and modems.
@Suite("Paths by kinds of interfaces that the kernel of the tests may lack")
struct PathKindTests {
    /// RTM_NEWLINK with what a kind tells beside the usual.
    private func link(
        _ index: UInt32, _ name: String, kind: String? = nil, hardware: UInt16 = 1,
        flags: UInt32 = 0x11043, state: UInt8 = 6, lower: UInt32? = nil, master: UInt32? = nil,
        masterKind: String? = nil, bus: String? = nil
    ) -> [UInt8] {
        func text(_ text: String) -> [UInt8] { Array(text.utf8) + [0] }
        var information: [UInt8] = []
        // IFLA_INFO_KIND, and IFLA_INFO_DATA with one attribute of the kind's own.
        if let kind {
            information += Made.attribute(1, text(kind))
            information += Made.attribute(0x8002, Made.attribute(1, Made.number(UInt16(7))))
        }
        // IFLA_INFO_SLAVE_KIND, and IFLA_INFO_SLAVE_DATA: those of a port's master.
        if let masterKind {
            information += Made.attribute(4, text(masterKind))
            information += Made.attribute(0x8005, Made.attribute(1, [0]))
        }
        var body = [0, 0] + Made.number(hardware) + Made.number(index) + Made.number(flags)
        body +=
            Made.zeros(4) + Made.attribute(3, text(name))
            + Made.attribute(4, Made.number(UInt32(1_500)))
        body += Made.attribute(16, [state]) + Made.attribute(33, [flags & 0x10000 == 0 ? 0 : 1])
        if let lower { body += Made.attribute(5, Made.number(lower)) }
        if let master { body += Made.attribute(10, Made.number(master)) }
        if !information.isEmpty { body += Made.attribute(0x8012, information) }
        if let bus { body += Made.attribute(57, text(bus)) }
        return Made.message(16, body)
    }

    private func host(_ links: [[UInt8]], default index: UInt32) throws -> SimulatedHost {
        var host = try SimulatedHost()
        for link in links { try host.hear(link) }
        try host.address(index, "192.0.2.2", 24)
        try host.addDefault(by: index, via: "192.0.2.1")
        return host
    }

    /// IFF_MASTER of a bond or team, IFF_SLAVE of its ports.
    private let masterFlags: UInt32 = 0x11443
    private let portFlags: UInt32 = 0x11843

    @Test(
        "a bond or team is of its ports' type, and usable by its own state",
        arguments: ["bond", "team"])
    func bond(kind: String) throws {
        func port(_ index: UInt32, _ flags: UInt32, _ state: UInt8) -> [UInt8] {
            link(
                index, "eth\(index)", flags: flags, state: state, master: 20, masterKind: kind)
        }
        let bond = link(20, "bond0", kind: kind, flags: masterFlags)
        var host = try host(
            [bond, port(2, portFlags, 6), port(3, portFlags, 6)], default: 20)
        #expect(
            try host.path().description == "satisfied via bond0 (wiredEthernet) v4 gw 192.0.2.1")
        // One port is enough, and the route knows only the bond.
        try host.hear(port(2, 0x1803, 2))
        #expect(try host.path().status == .satisfied)
        #expect(try host.path().interfaces.map(\.name) == ["bond0"])
        #expect(try !host.path().isDegraded)
        try host.hear(port(3, 0x1803, 2))
        try host.hear(link(20, "bond0", kind: kind, flags: 0x1403, state: 2))
        #expect(try host.path().obstacle == .noCarrier("bond0"))
        // An Ethernet port and a wireless one: by whichever it goes, it is wired if it can be.
        try host.hear(port(2, portFlags, 6))
        try host.hear(bond)
        host.types[3] = .wifi
        #expect(try host.evaluator().type(of: 20) == .wiredEthernet)
        host.types[2] = .wifi
        #expect(try host.path().interfaces.map(\.type) == [.wifi])
    }

    @Test("a bond without ports is of no type, and without a carrier")
    func emptyBond() throws {
        let host = try host(
            [link(20, "bond0", kind: "bond", flags: 0x1403, state: 2)], default: 20)
        #expect(try host.path().obstacle == .noCarrier("bond0"))
        #expect(try host.evaluator().type(of: 20) == .other)
    }

    @Test(
        "a VLAN or ipvlan is of the type of what it stands on, and falls with it",
        arguments: ["vlan", "ipvlan", "macvtap"])
    func onTop(kind: String) throws {
        var host = try host(
            [
                link(2, "eth2", flags: portFlags, master: 20, masterKind: "bond"),
                link(20, "bond0", kind: "bond", flags: masterFlags),
                link(21, "top7", kind: kind, lower: 20),
            ], default: 21)
        #expect(
            try host.path().description == "satisfied via top7 (wiredEthernet) v4 gw 192.0.2.1")
        host.types[2] = .wifi
        #expect(try host.path().interfaces.map(\.type) == [.wifi])
        var requirement = PathRequirement()
        requirement.prohibitedTypes = [.wifi]
        #expect(try host.path(requirement).status == .unsatisfied)
        // UP, and LOWERLAYERDOWN.
        try host.hear(link(21, "top7", kind: kind, flags: 0x1003, state: 3, lower: 20))
        #expect(try host.path().obstacle == .noCarrier("top7"))
    }

    /// POINTOPOINT, NOARP, UP, LOWER_UP and RUNNING, with an unknown state; ARPHRD_NONE.
    private let wireGuardFlags: UInt32 = 0x100D1

    @Test(
        "WireGuard is a tunnel: of another type, usable in its unknown state, a VPN if it is down")
    func wireGuard() throws {
        func tunnel(_ flags: UInt32, _ state: UInt8) -> [UInt8] {
            link(30, "wg0", kind: "wireguard", hardware: 65_534, flags: flags, state: state)
        }
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 10, via: "192.0.2.1", metric: 100)
        try host.hear(tunnel(wireGuardFlags, 0))
        try host.address(30, "10.8.0.2", 32)
        host.routes += try ["0.0.0.0", "128.0.0.0"].map {
            try RouteMessage(.ipv4, to: $0, 1, hops: [RouteMessage.Hop(30)])
        }
        let path = try host.path()
        #expect(path.description == "satisfied via wg0 (other) v4")
        #expect(path.interfaces.map(\.name) == ["wg0", "w0"])
        #expect(try path.ipv4 == .usable(interface: "wg0", source: address("10.8.0.2")))
        try host.hear(tunnel(0x90, 2))
        #expect(try host.path().unsatisfiedReason == .vpnInactive)
        #expect(try host.path().obstacle == .interfaceDown("wg0"))
        var requirement = PathRequirement()
        requirement.prohibitedTypes = [.other]
        #expect(try host.path(requirement).interfaces.map(\.name) == ["w0"])
    }

    @Test("a wireless card waits while it authenticates, and needs a connection until then")
    func wireless() throws {
        var host = try host([link(3, "wlan0", flags: 0x11043)], default: 3)
        host.types[3] = .wifi
        #expect(try host.path().description == "satisfied via wlan0 (wifi) v4 gw 192.0.2.1")
        // IFF_DORMANT: associated, and not authenticated yet.
        try host.hear(link(3, "wlan0", flags: 0x31003, state: 5))
        #expect(try host.path().status == .requiresConnection)
        #expect(try host.path().obstacle == .dormant("wlan0"))
        // Out of range.
        try host.hear(link(3, "wlan0", flags: 0x1003, state: 2))
        #expect(try host.path().obstacle == .noCarrier("wlan0"))
    }

    @Test("a modem is cellular and expensive, by its bus, its kind or its frames without a header")
    func modem() throws {
        for modem in [
            link(4, "wwan0", hardware: 65_534, bus: "wwan"), link(4, "wwan0", kind: "wwan"),
            link(4, "rmnet0", hardware: 519),
        ] {
            let path = try host([modem], default: 4).path()
            #expect(path.interfaces.map(\.type) == [.cellular])
            #expect(path.isExpensive)
        }
    }

    @Test(
        "what has no type of its own",
        arguments: [
            "vrf", "dummy", "gre", "sit", "ipip", "ip6tnl", "geneve", "vxlan", "xfrm", "ppp",
        ])
    func others(kind: String) throws {
        let path = try host([link(5, "x0", kind: kind)], default: 5).path()
        #expect(path.description == "satisfied via x0 (other) v4 gw 192.0.2.1")
    }
}
