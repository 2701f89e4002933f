import Testing
import TowpathWire

@Suite("The words of a path")
struct PathTextTests {
    @Test(
        "each obstacle has its words",
        arguments: [
            (.dormant("w0"), "w0 is dormant"), (.noCarrier("w0"), "no carrier on w0"),
            (.addressTentative("w0"), "the address of w0 is still being checked"),
            (.addressDuplicate("w0"), "another host has the address of w0"),
            (.noAddress("w0"), "no usable address on w0"), (.interfaceDown("w0"), "w0 is down"),
            (
                .interfaceExcluded,
                "the required and prohibited interfaces leave none that leads there"
            ),
            (.interfaceMissing("w0"), "there is no interface w0"),
            (.unreachable, "a route or rule answers unreachable"),
            (.prohibited, "a route or rule prohibits it"),
            (.blackhole, "a route discards the packets"), (.noRoute, "no route"),
        ] as [(Path.Obstacle, String)])
    func obstacles(obstacle: Path.Obstacle, words: String) {
        #expect(obstacle.description == words)
    }

    @Test("obstacles are ordered by how near they are to working")
    func distances() {
        let obstacles: [Path.Obstacle] = [
            .dormant("a"), .noCarrier("a"), .addressTentative("a"), .addressDuplicate("a"),
            .noAddress("a"), .interfaceDown("a"), .interfaceExcluded, .interfaceMissing("a"),
            .unreachable, .prohibited, .blackhole, .noRoute,
        ]
        #expect(obstacles.map(\.distance) == Array(0..<12))
    }

    @Test("a path that nobody has evaluated is unsatisfied and empty")
    func empty() {
        let path = Path()
        #expect(path.description == "unsatisfied")
        #expect(path.explanation == "IPv4: no route\nIPv6: no route")
        #expect(!path.supportsIPv4)
        #expect(!path.supportsIPv6)
        #expect(!path.usesInterfaceType(.wiredEthernet))
    }

    @Test("everything that a path can say, in one line")
    func whole() throws {
        var path = Path()
        let source = try IPAddress(parsing: "192.0.2.2")
        path.status = .satisfied
        path.interfaces = [
            Path.Interface(
                name: "eth0", index: 2, type: .wiredEthernet, mtu: 1_500, addresses: [source])
        ]
        path.ipv4 = .usable(interface: "eth0", source: source)
        path.gateways = try ["192.0.2.1", "fe80::1%eth0"].map { try IPAddress(parsing: $0) }
        path.supportsDNS = true
        #expect(
            path.description
                == "satisfied via eth0 (wiredEthernet) v4 dns gw 192.0.2.1 fe80::1%eth0")
        #expect(
            path.explanation
                == "IPv4: the route leads through eth0, from 192.0.2.2\nIPv6: no route")
        path.ipv6 = .usable(interface: "eth0", source: try IPAddress(parsing: "2001:db8::2"))
        (path.isExpensive, path.isConstrained, path.isUltraConstrained) = (true, true, true)
        (path.isDegraded, path.isPolled) = (true, true)
        #expect(
            path.description
                == "satisfied via eth0 (wiredEthernet) v4 v6 dns gw 192.0.2.1 fe80::1%eth0 "
                + "expensive constrained ultra-constrained degraded polled")
        #expect(path.usesInterfaceType(.wiredEthernet))
        #expect(!path.usesInterfaceType(.wifi))
        let known = path.description
        path.isGatewayReachable = true
        #expect(path.description == known)
        path.isGatewayReachable = false
        #expect(
            path.description.contains("gw 192.0.2.1 fe80::1%eth0 (gateway does not answer) exp"))
    }

    @Test("an unsatisfied one says what is in the way")
    func unsatisfied() throws {
        var host = try SimulatedHost.pair()
        host.link(10, "w0", .noCarrier)
        try host.addDefault(by: 10, via: "192.0.2.1")
        let path = try host.path()
        #expect(path.description == "unsatisfied (no carrier on w0)")
        #expect(path.explanation == "IPv4: no carrier on w0\nIPv6: no route")
    }
}
