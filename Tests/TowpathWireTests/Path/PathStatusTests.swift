import Testing
import TowpathWire

private func address(_ text: String) throws -> IPAddress { try IPAddress(parsing: text) }

@Suite("Whether a path is satisfied, and what is in the way")
struct PathStatusTests {
    private func expect(
        _ path: Path, _ obstacle: Path.Obstacle, _ reason: Path.UnsatisfiedReason = .notAvailable,
        _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(path.status == .unsatisfied, sourceLocation: location)
        #expect(path.obstacle == obstacle, sourceLocation: location)
        #expect(path.unsatisfiedReason == reason, sourceLocation: location)
        #expect(!path.supportsIPv4 && !path.supportsIPv6, sourceLocation: location)
        #expect(path.gateways == [], sourceLocation: location)
    }

    @Test("the loopback alone leads nowhere")
    func loopback() throws {
        let path = try SimulatedHost().path()
        expect(path, .noRoute)
        #expect(path.interfaces == [])
    }

    @Test("a default route by an interface with an address")
    func satisfied() throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 10, via: "192.0.2.1")
        try host.addDefault(.ipv6, by: 10, via: "2001:db8::1")
        let path = try host.path()
        #expect(path.status == .satisfied)
        #expect(path.unsatisfiedReason == nil)
        #expect(path.obstacle == nil)
        #expect(try path.ipv4 == .usable(interface: "w0", source: address("192.0.2.2")))
        #expect(try path.ipv6 == .usable(interface: "w0", source: address("2001:db8::2")))
        let expected = Path.Interface(
            name: "w0", index: 10, type: .wiredEthernet, mtu: 1_500,
            addresses: try ["192.0.2.2", "2001:db8::2", "fe80::a"].map(address))
        #expect(path.interfaces == [expected])
        #expect(try path.gateways == ["192.0.2.1", "2001:db8::1"].map(address))
        #expect(path.localEndpoint == nil)
        #expect(path.remoteEndpoint == nil)
        #expect(!path.isDegraded)
    }

    @Test("what a kernel told and answered gives a path")
    func captured() throws {
        var table = NetworkTable()
        for message in try contents(of: Kernel.links + Kernel.addresses) {
            _ = table.apply(message)
        }
        func route(_ bytes: [UInt8]) throws -> RouteMessage {
            guard case .newRoute(let route, _) = try content(of: bytes) else {
                throw NetlinkError.lengthTooSmall(0)
            }
            return route
        }
        let (way4, entry4) = try (route(Kernel.way4), route(Kernel.entry4))
        let (way6, entry6) = try (route(Kernel.way6), route(Kernel.entry6))
        let evaluator = PathEvaluator(table: table, defaults: [entry4, entry6]) { query in
            query.destination.family == .ipv4
                ? .route(query.matchesTable ? entry4 : way4)
                : .route(query.matchesTable ? entry6 : way6)
        }
        #expect(
            evaluator.path().description
                == "satisfied via w0 (wiredEthernet) v4 v6 gw 192.0.2.1 fe80::1%w0")
    }

    @Test("BR-076: without a carrier, though the route stays")
    func noCarrier() throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 10, via: "192.0.2.1")
        host.link(10, "w0", .noCarrier)
        let path = try host.path()
        expect(path, .noCarrier("w0"))
        #expect(path.interfaces == [])
    }

    @Test("BR-076: switched off, which took the route along; up again, which does not restore it")
    func down() throws {
        var host = try SimulatedHost()
        host.link(10, "w0", .down)
        try host.address(10, "192.0.2.2", 24)
        expect(try host.path(), .interfaceDown("w0"))
        host.link(10, "w0", .up)
        expect(try host.path(), .noRoute)
    }

    @Test("BR-076: switched off, while a route leads there")
    func downWithRoute() throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 10, via: "192.0.2.1")
        host.link(10, "w0", .down)
        expect(try host.path(), .interfaceDown("w0"))
    }

    @Test("BR-076: what waits to be used needs a connection, by a route or without one")
    func dormant() throws {
        for hasRoute in [true, false] {
            var host = try SimulatedHost()
            host.link(10, "w0", .dormant)
            try host.address(10, "192.0.2.2", 24)
            if hasRoute { try host.addDefault(by: 10, via: "192.0.2.1") }
            let path = try host.path()
            #expect(path.status == .requiresConnection)
            #expect(path.obstacle == .dormant("w0"))
            #expect(path.unsatisfiedReason == .notAvailable)
            host.link(10, "w0", .up)
            #expect(try host.path().status == (hasRoute ? .satisfied : .unsatisfied))
        }
    }

    @Test("BR-076: without a route, the interface nearest to working is named; ports are not")
    func withoutRoute() throws {
        var host = try SimulatedHost()
        host.link(20, "w2", .down)
        host.link(22, "port", .dormant) { $0.master = 30 }
        expect(try host.path(), .interfaceDown("w2"))
        host.link(21, "w3", .noCarrier)
        expect(try host.path(), .noCarrier("w3"))
        host.link(23, "w4", .dormant)
        #expect(try host.path().obstacle == .dormant("w4"))
        host.link(24, "w5", .up)
        expect(try host.path(), .noRoute)
    }

    @Test(
        "BR-080: routes and rules that refuse",
        arguments: [
            (RouteMessage.Kind.unreachable, Path.Obstacle.unreachable), (.blackhole, .blackhole),
            (.prohibit, .prohibited), (.throw, .noRoute),
        ])
    func refused(kind: RouteMessage.Kind, obstacle: Path.Obstacle) throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 10, via: "192.0.2.1", metric: 100)
        try host.addDefault(kind: kind)
        try host.addDefault(.ipv6, kind: kind)
        let path = try host.path()
        expect(path, obstacle)
        #expect(path.ipv4 == .unusable(obstacle))
        #expect(path.ipv6 == .unusable(obstacle))
    }

    @Test("BR-080: an unreachable default of IPv6 does not make the loopback a way out")
    func unreachableLoopback() throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 10, via: "192.0.2.1")
        try host.addDefault(.ipv6, kind: .unreachable)
        let path = try host.path()
        #expect(path.status == .satisfied)
        #expect(path.ipv6 == .unusable(.unreachable))
        #expect(path.interfaces.map(\.name) == ["w0"])
    }

    @Test("a route without an address to leave from")
    func noAddress() throws {
        var host = try SimulatedHost.pair()
        host.removeAddresses(of: 10, .ipv4)
        try host.addDefault(by: 10)
        expect(try host.path(), .noAddress("w0"))
    }

    @Test("a link-local address alone is none")
    func linkLocal() throws {
        var host = try SimulatedHost()
        host.link(10, "w0")
        try host.address(10, "fe80::a", 64, scope: 253)
        try host.addDefault(.ipv6, by: 10, via: "fe80::1")
        expect(try host.path(), .noAddress("w0"))
        try host.address(10, "2001:db8::2", 64)
        let path = try host.path()
        #expect(path.status == .satisfied)
        #expect(!path.supportsIPv4)
        #expect(try path.gateways == [address("fe80::1%w0")])
    }

    @Test(
        "an address of IPv6 while it is checked, and after",
        arguments: [
            (UInt32(0xC0), Path.Obstacle?.some(.addressTentative("w0"))),
            (0xC8, .addressDuplicate("w0")), (0x88, .addressDuplicate("w0")), (0xC4, nil),
            (0x80, nil), (0x20, nil),
        ])
    func checked(flags: UInt32, obstacle: Path.Obstacle?) throws {
        var host = try SimulatedHost()
        host.link(10, "w0")
        try host.address(10, "fe80::a", 64, scope: 253)
        try host.address(10, "2001:db8::2", 64, flags: flags)
        try host.addDefault(.ipv6, by: 10, via: "fe80::1")
        let path = try host.path()
        #expect(path.obstacle == obstacle)
        #expect(path.supportsIPv6 == (obstacle == nil))
    }

    @Test("an address that belongs to the loopback alone is none, another interface's is one")
    func foreign() throws {
        var host = try SimulatedHost.pair()
        host.removeAddresses(of: 10, .ipv4)
        try host.address(1, "198.51.100.1", 32)
        try host.addDefault(by: 10, via: "192.0.2.1", from: "198.51.100.1")
        expect(try host.path(), .noAddress("w0"))
        host.routes.removeLast()
        try host.addDefault(by: 10, via: "192.0.2.1", from: "203.0.113.2")
        let path = try host.path()
        #expect(try path.ipv4 == .usable(interface: "w0", source: address("203.0.113.2")))
    }

    @Test("a tunnel without a program that runs it is an inactive VPN")
    func tunnel() throws {
        var host = try SimulatedHost.pair()
        host.link(30, "tun9", .noCarrier, kind: "tun") { $0.hardwareType = 65_534 }
        try host.address(30, "10.8.0.2", 24)
        try host.addDefault(by: 10, via: "192.0.2.1", metric: 100)
        try host.addDefault(by: 30)
        expect(try host.path(), .noCarrier("tun9"), .vpnInactive)
        host.link(30, "tun9", .up, kind: "tun") { $0.hardwareType = 65_534 }
        let path = try host.path()
        #expect(path.status == .satisfied)
        #expect(path.interfaces.map(\.name) == ["tun9", "w0"])
        #expect(path.interfaces.map(\.type) == [.other, .wiredEthernet])
        // Its program ends, and with it the interface.
        host.routes.removeLast()
        #expect(try host.path().interfaces.map(\.name) == ["w0"])
    }

    @Test("the answer to the second question may be an error, as things change between them")
    func racing() throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 10, via: "192.0.2.1")
        for text in ["1.1.1.1", "193.0.14.129"] {
            host.errnos[RouteQuery(to: try address(text))] = 101
        }
        #expect(try host.path().status == .unsatisfied)
    }

    @Test("a route to an interface that the table does not know yet leads nowhere")
    func unknownInterface() throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 99, via: "192.0.2.1")
        let path = try host.path()
        expect(path, .noRoute)
    }
}
