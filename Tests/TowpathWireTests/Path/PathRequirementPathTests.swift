import Testing
import TowpathWire

private func address(_ text: String) throws -> IPAddress { try IPAddress(parsing: text) }

@Suite("Paths with requirements and hints")
struct PathRequirementPathTests {
    private var host: SimulatedHost
    private var requirement = PathRequirement()

    /// w0 is the kernel's choice, wlan0 the second, wwan0 the third, w1 has no default.
    init() throws {
        host = try SimulatedHost.pair()
        host.link(12, "wlan0")
        host.link(13, "wwan0", kind: "wwan")
        host.types[12] = .wifi
        try host.address(12, "198.51.100.2", 24)
        try host.address(13, "100.64.0.2", 24)
        try host.addDefault(by: 10, via: "192.0.2.1", metric: 100)
        try host.addDefault(by: 12, via: "198.51.100.1", metric: 600)
        try host.addDefault(by: 13, metric: 700)
    }

    private func names() throws -> [String] { try host.path(requirement).interfaces.map(\.name) }

    @Test("an interface that is required")
    mutating func interface() throws {
        requirement.interface = "wlan0"
        let path = try host.path(requirement)
        #expect(path.status == .satisfied)
        #expect(path.interfaces.map(\.name) == ["wlan0"])
        #expect(try path.ipv4 == .usable(interface: "wlan0", source: address("198.51.100.2")))
        #expect(try path.gateways == [address("198.51.100.1")])
    }

    @Test("an interface that does not exist")
    mutating func missing() throws {
        requirement.interface = "w7"
        let path = try host.path(requirement)
        #expect(path.status == .unsatisfied)
        #expect(path.obstacle == .interfaceMissing("w7"))
    }

    @Test("an interface without a route: IPv4's invented way does not count")
    mutating func invented() throws {
        requirement.interface = "w1"
        let path = try host.path(requirement)
        #expect(path.status == .unsatisfied)
        #expect(path.obstacle == .interfaceExcluded)
        #expect(path.ipv4 == .unusable(.interfaceExcluded))
        #expect(path.ipv6 == .unusable(.noRoute))
        #expect(path.interfaces == [])
        host.routes.removeAll { $0.destination == nil }
        #expect(try host.path(requirement).obstacle == .noRoute)
    }

    @Test("a required interface that is broken is named, though others lead there")
    mutating func broken() throws {
        requirement.interface = "w1"
        host.link(11, "w1", .down)
        #expect(try host.path(requirement).obstacle == .interfaceDown("w1"))
        host.link(11, "w1", .noCarrier)
        #expect(try host.path(requirement).obstacle == .noCarrier("w1"))
    }

    @Test("an unreachable route stays one where an interface is required")
    mutating func unreachable() throws {
        try host.addDefault(kind: .unreachable)
        requirement.interface = "wlan0"
        #expect(try host.path(requirement).obstacle == .unreachable)
    }

    @Test("a type that is required")
    mutating func type() throws {
        requirement.type = .wifi
        #expect(try names() == ["wlan0"])
        requirement.type = .cellular
        #expect(try names() == ["wwan0"])
        #expect(try host.path(requirement).isExpensive)
        requirement.type = .other
        let path = try host.path(requirement)
        #expect(path.status == .unsatisfied)
        #expect(path.obstacle == .interfaceExcluded)
    }

    @Test("the loopback leads out by no requirement")
    mutating func loopback() throws {
        requirement.type = .loopback
        #expect(try host.path(requirement).obstacle == .interfaceExcluded)
    }

    @Test("types that are prohibited: the next best stands in")
    mutating func prohibitedTypes() throws {
        requirement.prohibitedTypes = [.wiredEthernet]
        #expect(try names() == ["wlan0", "wwan0"])
        #expect(
            try host.path(requirement).ipv4
                == .usable(interface: "wlan0", source: address("198.51.100.2")))
        requirement.prohibitedTypes = [.wiredEthernet, .wifi, .cellular]
        let path = try host.path(requirement)
        #expect(path.obstacle == .interfaceExcluded)
        #expect(path.unsatisfiedReason == .notAvailable)
        #expect(path.interfaces == [])
    }

    @Test("interfaces that are prohibited")
    mutating func prohibitedInterfaces() throws {
        requirement.prohibitedInterfaces = ["w0", "wlan0"]
        #expect(try names() == ["wwan0"])
    }

    @Test("expensive ones may be prohibited: modems, and what the user said")
    mutating func expensive() throws {
        #expect(try !host.path().isExpensive)
        requirement.expensive = ["w0"]
        #expect(try host.path(requirement).isExpensive)
        requirement.prohibitsExpensive = true
        #expect(try names() == ["wlan0"])
        requirement.expensive = ["w0", "wl*"]
        #expect(try host.path(requirement).obstacle == .interfaceExcluded)
    }

    @Test("constrained ones may be prohibited, ultra-constrained ones with them")
    mutating func constrained() throws {
        requirement.constrained = ["w0"]
        requirement.ultraConstrained = ["wlan?"]
        var path = try host.path(requirement)
        #expect(path.isConstrained)
        #expect(!path.isUltraConstrained)
        requirement.prohibitedInterfaces = ["w0"]
        path = try host.path(requirement)
        #expect(path.isConstrained)
        #expect(path.isUltraConstrained)
        requirement.prohibitedInterfaces = []
        requirement.prohibitsConstrained = true
        #expect(try names() == ["wwan0"])
        #expect(try !host.path(requirement).isConstrained)
    }

    @Test("the order of candidates is that of the family asked for")
    mutating func families() throws {
        host.routes.removeAll { $0.destination == nil }
        try host.addDefault(by: 10, via: "192.0.2.1", metric: 1)
        try host.addDefault(by: 11, via: "203.0.113.1", metric: 2)
        try host.addDefault(.ipv6, by: 11, via: "fe80::1", metric: 1)
        try host.addDefault(.ipv6, by: 10, via: "fe80::1", metric: 2)
        requirement.prohibitedTypes = [.wifi]
        let path = try host.path(requirement)
        #expect(try path.ipv4 == .usable(interface: "w0", source: address("192.0.2.2")))
        #expect(try path.ipv6 == .usable(interface: "w1", source: address("2001:db8:1::2")))
    }

    @Test("only one family")
    mutating func family() throws {
        try host.addDefault(.ipv6, by: 11, via: "fe80::1")
        requirement.family = .ipv6
        var path = try host.path(requirement)
        #expect(!path.supportsIPv4)
        #expect(path.supportsIPv6)
        requirement.family = .ipv4
        path = try host.path(requirement)
        #expect(path.supportsIPv4)
        #expect(!path.supportsIPv6)
    }

    @Test("a source that is required is the one, though IPv4's answer does not repeat it")
    mutating func source() throws {
        try host.addDefault(.ipv6, by: 10, via: "fe80::1")
        requirement.source = try address("203.0.113.2")
        var path = try host.path(requirement)
        #expect(try path.ipv4 == .usable(interface: "w0", source: address("203.0.113.2")))
        #expect(try path.ipv6 == .usable(interface: "w0", source: address("2001:db8::2")))
        requirement.source = try address("2001:db8:1::2")
        path = try host.path(requirement)
        #expect(try path.ipv4 == .usable(interface: "w0", source: address("192.0.2.2")))
        #expect(try path.ipv6 == .usable(interface: "w0", source: address("2001:db8:1::2")))
    }

    @Test("the kernel is asked with mark, user and source, for the entry first")
    func selectors() throws {
        var requirement = PathRequirement()
        (requirement.mark, requirement.user) = (7, 1_000)
        requirement.source = try address("192.0.2.2")
        var queries: [RouteQuery] = []
        let evaluator = PathEvaluator(
            table: host.table, requirement: requirement, defaults: [],
            ask: { query in
                queries.append(query)
                return host.answer(query)
            })
        #expect(evaluator.path().status == .satisfied)
        #expect(queries.allSatisfy { $0.mark == 7 && $0.user == 1_000 && $0.interface == nil })
        #expect(
            queries.allSatisfy {
                $0.source == ($0.destination.family == .ipv4 ? requirement.source : nil)
            })
        #expect(queries.first?.matchesTable == true)
    }
}
