import Testing
import TowpathWire

private func address(_ text: String) throws -> IPAddress { try IPAddress(parsing: text) }

@Suite("Paths to one host, and to name servers")
struct PathDestinationTests {
    private func endpoint(_ text: String, _ port: UInt16) throws -> Endpoint {
        .hostPort(host: Host(try address(text)), port: port)
    }

    @Test("a host behind a gateway, and one on the link")
    func destinations() throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 10, via: "192.0.2.1")
        let far = try host.path(to: ["198.51.100.7"], port: 443)
        #expect(far.status == .satisfied)
        #expect(try far.localEndpoint == endpoint("192.0.2.2", 0))
        #expect(try far.remoteEndpoint == endpoint("198.51.100.7", 443))
        #expect(try far.gateways == [address("192.0.2.1")])
        let near = try host.path(to: ["203.0.113.7"])
        #expect(near.interfaces.map(\.name) == ["w1"])
        #expect(near.gateways == [])
        #expect(try near.localEndpoint == endpoint("203.0.113.2", 0))
        #expect(try near.remoteEndpoint == endpoint("203.0.113.7", 0))
    }

    @Test("without a default route a host on the link is reached, another is not")
    func noDefault() throws {
        let host = try SimulatedHost.pair()
        #expect(try host.path().status == .unsatisfied)
        #expect(try host.path(to: ["192.0.2.7"]).status == .satisfied)
        let path = try host.path(to: ["198.51.100.7"])
        #expect(path.obstacle == .noRoute)
        #expect(path.localEndpoint == nil)
        #expect(path.remoteEndpoint == nil)
    }

    @Test(
        "this host's own addresses are reached by the loopback, even if nothing leads out",
        arguments: ["127.0.0.1", "::1", "192.0.2.2", "2001:db8::2"])
    func local(text: String) throws {
        let path = try SimulatedHost.pair().path(to: [text], port: 80)
        #expect(path.status == .satisfied)
        #expect(path.interfaces.map(\.name) == ["lo"])
        #expect(path.usesInterfaceType(.loopback))
        #expect(path.gateways == [])
        #expect(try path.localEndpoint == endpoint(text, 0))
        #expect(try path.remoteEndpoint == endpoint(text, 80))
    }

    @Test("what a kernel answers of its own addresses", arguments: [AddressFamily.ipv4, .ipv6])
    func capturedLocal(family: AddressFamily) throws {
        let bytes =
            family == .ipv4
            ? [Kernel.wayLocal4, Kernel.entryLocal4] : [Kernel.wayLocal6, Kernel.entryLocal6]
        var table = NetworkTable()
        for message in try contents(of: Kernel.links + Kernel.addresses) {
            _ = table.apply(message)
        }
        let answers = try bytes.map { bytes in
            guard case .newRoute(let route, _) = try content(of: bytes) else {
                return PathEvaluator.Answer.failed(errno: 101)
            }
            return .route(route)
        }
        let evaluator = PathEvaluator(table: table, defaults: []) {
            answers[$0.matchesTable ? 1 : 0]
        }
        let own = try address(family == .ipv4 ? "192.0.2.2" : "2001:db8::2")
        let path = evaluator.path(to: [own])
        #expect(path.interfaces.map(\.name) == ["lo"])
        #expect(path.localEndpoint == .hostPort(host: Host(own), port: 0))
    }

    @Test("of both families, IPv6 gives the endpoints")
    func bothFamilies() throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 10, via: "192.0.2.1")
        try host.addDefault(.ipv6, by: 11, via: "fe80::1")
        let texts = ["198.51.100.7", "2001:db8:f::7"]
        let path = try host.path(to: texts, port: 1)
        #expect(try path.remoteEndpoint == endpoint("2001:db8:f::7", 1))
        #expect(try path.localEndpoint == endpoint("2001:db8:1::2", 0))
        #expect(path.interfaces.map(\.name) == ["w0", "w1"])
        host.routes.removeLast()
        #expect(try host.path(to: texts, port: 1).remoteEndpoint == endpoint(texts[0], 1))
    }

    @Test("of several addresses, the one that can be reached is the remote endpoint")
    func severalAddresses() throws {
        let host = try SimulatedHost.pair()
        let path = try host.path(to: ["198.51.100.7", "192.0.2.7"])
        #expect(path.status == .satisfied)
        #expect(try path.remoteEndpoint == endpoint("192.0.2.7", 0))
    }

    @Test("a link-local host is reached on the link of its zone, from a link-local address")
    func linkLocal() throws {
        let host = try SimulatedHost.pair()
        for (zone, name, source) in [("w1", "w1", "fe80::b"), ("10", "w0", "fe80::a")] {
            let path = try host.path(to: ["fe80::7%\(zone)"], port: 5)
            #expect(path.status == .satisfied)
            #expect(path.interfaces.map(\.name) == [name])
            #expect(try path.localEndpoint == endpoint(source, 0))
            #expect(try path.remoteEndpoint == endpoint("fe80::7%\(zone)", 5))
        }
        #expect(try host.path(to: ["fe80::7%w9"]).obstacle == .interfaceMissing("w9"))
        var requirement = PathRequirement()
        requirement.interface = "w0"
        let path = try host.path(requirement, to: ["fe80::7%w1"])
        #expect(path.obstacle == .interfaceExcluded)
        #expect(try host.path(requirement, to: ["fe80::7%w0"]).status == .satisfied)
        #expect(
            try host.path(requirement, to: ["fe80::7%w9"]).obstacle == .interfaceMissing("w9"))
    }

    @Test("RFC 3927: a link-local host of IPv4 is reached from a link-local address")
    func linkLocal4() throws {
        var host = try SimulatedHost()
        host.link(10, "w0")
        try host.address(10, "169.254.7.7", 16, scope: 253)
        host.routes = [
            try RouteMessage(.ipv4, to: "169.254.0.0", 16, hops: [RouteMessage.Hop(10)])
        ]
        let path = try host.path(to: ["169.254.1.1"])
        #expect(path.status == .satisfied)
        #expect(try path.localEndpoint == endpoint("169.254.7.7", 0))
    }

    @Test("what a kernel answers of a link-local host")
    func capturedLinkLocal() throws {
        var table = NetworkTable()
        for message in try contents(of: Kernel.links + Kernel.addresses) {
            _ = table.apply(message)
        }
        let evaluator = PathEvaluator(table: table, defaults: []) { query in
            let bytes = query.matchesTable ? Kernel.entryLinkLocal6 : Kernel.wayLinkLocal6
            guard query.interface == 11, case .newRoute(let route, _) = try? content(of: bytes)
            else { return .failed(errno: 101) }
            return .route(route)
        }
        let path = evaluator.path(to: [try address("fe80::1%w1")])
        #expect(try path.ipv6 == .usable(interface: "w1", source: address("fe80::ff:fe00:b")))
    }

    @Test("names can be looked up if one server can be reached, and is one of this host's too")
    func nameServers() throws {
        var host = try SimulatedHost.pair()
        func supportsDNS(_ servers: [String]) throws -> Bool {
            try host.evaluator(nameServers: servers).path().supportsDNS
        }
        #expect(try !supportsDNS([]))
        #expect(try !supportsDNS(["198.51.100.53"]))
        #expect(try supportsDNS(["198.51.100.53", "192.0.2.53"]))
        #expect(try supportsDNS(["127.0.0.53"]))
        #expect(try supportsDNS(["fe80::53%w1"]))
        #expect(try !supportsDNS(["fe80::53%w9"]))
        try host.addDefault(by: 10, via: "192.0.2.1")
        #expect(try supportsDNS(["198.51.100.53"]))
        host.link(10, "w0", .noCarrier)
        #expect(try !supportsDNS(["198.51.100.53"]))
    }
}
