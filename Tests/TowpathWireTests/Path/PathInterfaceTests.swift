import Testing
import TowpathWire

private func address(_ text: String) throws -> IPAddress { try IPAddress(parsing: text) }

@Suite("The interfaces and gateways of a path")
struct PathInterfaceTests {
    @Test("BR-080: the lowest metric wins, and none is the lowest")
    func metrics() throws {
        var host = try SimulatedHost.pair()
        host.link(12, "w2")
        try host.address(12, "198.51.100.2", 24)
        try host.addDefault(by: 10, via: "192.0.2.1", metric: 600)
        try host.addDefault(by: 11, via: "203.0.113.1", metric: 50)
        #expect(try host.path().interfaces.map(\.name) == ["w1", "w0"])
        try host.addDefault(by: 12, via: "198.51.100.1")
        #expect(try host.path().interfaces.map(\.name) == ["w2", "w1", "w0"])
        #expect(try host.path().gateways == [address("198.51.100.1")])
        host.routes.removeAll { $0.hops.first?.interface == 12 && $0.destination == nil }
        host.routes.removeAll { $0.priority == 50 }
        #expect(try host.path().interfaces.map(\.name) == ["w0"])
        host.routes.removeAll { $0.priority == 600 }
        #expect(try host.path().status == .unsatisfied)
    }

    @Test("BR-080: the order of the list decides between equal metrics")
    func equalMetrics() throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(.ipv6, by: 11, via: "fe80::1", metric: 1_024)
        try host.addDefault(.ipv6, by: 10, via: "fe80::1", metric: 1_024)
        #expect(try host.path().interfaces.map(\.name) == ["w1", "w0"])
    }

    @Test("BR-080: two halves of a tunnel come before a default, and one half is enough")
    func halves() throws {
        var host = try SimulatedHost.pair()
        host.link(30, "tun9", kind: "tun")
        try host.address(30, "10.8.0.2", 24)
        try host.addDefault(by: 10, via: "192.0.2.1")
        host.routes += try ["0.0.0.0", "128.0.0.0"].map {
            try RouteMessage(.ipv4, to: $0, 1, hops: [RouteMessage.Hop(30)])
        }
        #expect(try host.path().interfaces.map(\.name) == ["tun9", "w0"])
        host.routes.removeAll { $0.destinationLength == 0 }
        #expect(try host.path().status == .satisfied)
        host.routes.removeAll { $0.destination == .v4(.any) }
        #expect(try host.path().ipv4 == .usable(interface: "tun9", source: address("10.8.0.2")))
    }

    @Test("BR-080: the kernel's answer counts, not the list: a rule may send it elsewhere")
    func rule() throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 10, via: "192.0.2.1")
        let defaults = host.defaults
        host.routes = []
        try host.addDefault(by: 11, via: "203.0.113.1", metric: 900)
        let path = PathEvaluator(table: host.table, defaults: defaults, ask: host.answer).path()
        #expect(path.interfaces.map(\.name) == ["w1", "w0"])
    }

    @Test("without a carrier on the better default there is no path; required, the other is one")
    func carrier() throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 10, via: "192.0.2.1", metric: 100)
        try host.addDefault(by: 11, via: "203.0.113.1", metric: 200)
        host.link(10, "w0", .noCarrier)
        let path = try host.path()
        #expect(path.status == .unsatisfied)
        #expect(path.obstacle == .noCarrier("w0"))
        #expect(path.interfaces.map(\.name) == ["w1"])
        var requirement = PathRequirement()
        requirement.interface = "w1"
        #expect(try host.path(requirement).status == .satisfied)
        // With ignore_routes_with_linkdown the kernel takes the other one by itself.
        host.routes.removeAll { $0.priority == 100 }
        #expect(try host.path().status == .satisfied)
    }

    @Test("no gateway on the link, and one of IPv6 for IPv4")
    func gateways() throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 11)
        #expect(try host.path().status == .satisfied)
        #expect(try host.path().gateways == [])
        host.routes.removeLast()
        try host.addDefault(by: 11, via: "fe80::1")
        #expect(try host.path().gateways == [address("fe80::1%w1")])
        try host.addDefault(.ipv6, by: 11, via: "fe80::1")
        #expect(try host.path().gateways == [address("fe80::1%w1")])
    }

    private func multipath() throws -> SimulatedHost {
        var host = try SimulatedHost.pair()
        let hops = try [
            RouteMessage.Hop(10, "192.0.2.1"), RouteMessage.Hop(11, "203.0.113.1"),
        ]
        host.routes.append(try RouteMessage(.ipv4, hops: hops))
        return host
    }

    @Test("all ways of a route that has several")
    func severalWays() throws {
        let path = try multipath().path()
        #expect(path.status == .satisfied)
        #expect(path.interfaces.map(\.name) == ["w0", "w1"])
        #expect(try path.gateways == ["192.0.2.1", "203.0.113.1"].map(address))
        #expect(!path.isDegraded)
    }

    @Test("of several ways, the one that packets take stands first, with its own source")
    func takenWay() throws {
        var host = try multipath()
        host.chosenHop = 1
        let path = try host.path()
        #expect(try path.ipv4 == .usable(interface: "w1", source: address("203.0.113.2")))
        #expect(path.interfaces.map(\.name) == ["w1", "w0"])
        #expect(try path.gateways == ["203.0.113.1", "192.0.2.1"].map(address))
    }

    @Test("with a broken way the path is degraded, whichever this packet takes")
    func degraded() throws {
        for chosen in 0...1 {
            var host = try multipath()
            host.chosenHop = chosen
            host.link(11, "w1", .noCarrier)
            let path = try host.path()
            #expect(path.status == .satisfied)
            #expect(path.isDegraded)
            #expect(path.interfaces.map(\.name) == ["w0"])
            #expect(try path.gateways == [address("192.0.2.1")])
            #expect(try path.ipv4 == .usable(interface: "w0", source: address("192.0.2.2")))
        }
    }

    @Test("with all ways broken the nearest to working is named")
    func allBroken() throws {
        var host = try multipath()
        host.link(10, "w0", .down)
        host.link(11, "w1", .noCarrier)
        let path = try host.path()
        #expect(path.obstacle == .noCarrier("w1"))
        #expect(!path.isDegraded)
        #expect(path.interfaces == [])
    }

    @Test("a bridge is usable by its own state, and of the type of its ports")
    func bridge() throws {
        var host = try SimulatedHost.pair()
        host.link(20, "br0", .unknown, kind: "bridge")
        #expect(host.table.link(20)?.isUsable == true)
        #expect(try host.evaluator().type(of: 20) == .other)
        host.link(21, "vp") { $0.master = 20 }
        #expect(try host.evaluator().type(of: 20) == .wiredEthernet)
        host.link(21, "vp") { ($0.master, $0.kind) = (20, "tun") }
        #expect(try host.evaluator().type(of: 20) == .other)
        host.types[21] = .wifi
        #expect(try host.evaluator().type(of: 20) == .wifi)
        host.link(22, "vq") { $0.master = 20 }
        #expect(try host.evaluator().type(of: 20) == .wiredEthernet)
    }

    @Test("a macvlan is of its lower's type, and without carrier as that is")
    func macvlan() throws {
        var host = try SimulatedHost.pair()
        host.link(23, "mv0", .lowerLayerDown, kind: "macvlan") { $0.lower = 10 }
        try host.address(23, "198.51.100.2", 24)
        try host.addDefault(by: 23, via: "198.51.100.1")
        #expect(try host.path().obstacle == .noCarrier("mv0"))
        #expect(try host.evaluator().type(of: 23) == .wiredEthernet)
        host.types[10] = .wifi
        #expect(try host.evaluator().type(of: 23) == .wifi)
        host.link(23, "mv0", kind: "macvlan") { ($0.lower, $0.lowerIsElsewhere) = (10, true) }
        #expect(try host.evaluator().type(of: 23) == .wiredEthernet)
        host.link(23, "mv0", kind: "vlan") { $0.lower = 999 }
        #expect(try host.evaluator().type(of: 23) == .other)
    }

    @Test("interfaces in a circle have no type, and hold nothing up")
    func circle() throws {
        var host = try SimulatedHost()
        host.link(2, "a", kind: "macvlan") { $0.lower = 3 }
        host.link(3, "b", kind: "vlan") { $0.lower = 2 }
        host.link(4, "c", kind: "bridge") { $0.master = 4 }
        for index in UInt32(2)...4 { #expect(try host.evaluator().type(of: index) == .other) }
    }

    @Test(
        "the type of each kind of interface",
        arguments: [
            (UInt16(1), String?.none, InterfaceType.wiredEthernet), (1, "veth", .wiredEthernet),
            (1, "tun", .other), (65_534, "tun", .other), (65_534, "wireguard", .other),
            (1, "vxlan", .other), (1, "dummy", .other), (512, nil, .other), (801, nil, .wifi),
            (803, nil, .wifi), (804, nil, .other), (519, nil, .cellular), (1, "wwan", .cellular),
        ])
    func kinds(hardware: UInt16, kind: String?, type: InterfaceType) throws {
        var host = try SimulatedHost()
        host.link(5, "x", kind: kind) { $0.hardwareType = hardware }
        #expect(try host.evaluator().type(of: 5) == type)
    }

    @Test("what sysfs or the bus tells, and the loopback")
    func otherTypes() throws {
        var host = try SimulatedHost()
        host.link(5, "wlan0", kind: nil)
        host.link(6, "wwan0", kind: nil) { $0.parentBus = "wwan" }
        host.types[5] = .wifi
        let evaluator = try host.evaluator()
        #expect(evaluator.type(of: 5) == .wifi)
        #expect(evaluator.type(of: 6) == .cellular)
        #expect(evaluator.type(of: 1) == .loopback)
        #expect(evaluator.type(of: 99) == .other)
    }
}
