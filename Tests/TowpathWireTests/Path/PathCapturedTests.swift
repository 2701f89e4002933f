import Testing
import TowpathWire

@Suite("Paths from what a kernel told and answered")
struct PathCapturedTests {
    private func table(_ more: [UInt8] = []) throws -> NetworkTable {
        var table = NetworkTable()
        for message in try contents(of: Kernel.links + Kernel.addresses + more) {
            _ = table.apply(message)
        }
        return table
    }

    private func answer(_ bytes: [UInt8]) throws -> PathEvaluator.Answer {
        switch try content(of: bytes) {
        case .newRoute(let route, _): return .route(route)
        case .acknowledgement(let errno, _): return .failed(errno: errno)
        default: throw NetlinkError.lengthTooSmall(0)
        }
    }

    /// To IPv4 hosts, IPv6 has no route.
    private func path(
        _ table: NetworkTable, entry: [UInt8], way: [UInt8],
        _ requirement: PathRequirement = PathRequirement()
    ) throws -> Path {
        let (entry, way) = try (answer(entry), answer(way))
        let evaluator = PathEvaluator(table: table, requirement: requirement, defaults: []) {
            if $0.destination.family == .ipv6 { return .failed(errno: 101) }
            return $0.matchesTable ? entry : way
        }
        return evaluator.path()
    }

    @Test("of two ways, the one that the packet takes stands first")
    func multipath() throws {
        let path = try path(table(), entry: Kernel.entryMultipath4, way: Kernel.wayMultipath4)
        #expect(
            path.description == "satisfied via w1 (wiredEthernet) v4 gw 203.0.113.1 192.0.2.1")
        #expect(path.explanation.hasPrefix("IPv4: the route leads through w1, from 203.0.113.2\n"))
    }

    @Test("a cable is out: packets to some hosts are lost, the path is degraded")
    func multipathLinkDown() throws {
        let path = try path(
            table(Kernel.withoutCarrier), entry: Kernel.entryMultipathLinkDown4,
            way: Kernel.wayMultipath4)
        #expect(path.description == "satisfied via w0 (wiredEthernet) v4 gw 192.0.2.1 degraded")
        #expect(path.explanation.hasPrefix("IPv4: the route leads through w0, from 192.0.2.2\n"))
    }

    @Test("and the other interface is switched off")
    func multipathDead() throws {
        let path = try path(
            table(Kernel.withoutCarrier + Kernel.switchedOff), entry: Kernel.entryMultipathDead4,
            way: Kernel.wayMultipath4)
        #expect(path.description == "unsatisfied (no carrier on w1)")
    }

    @Test("a group of nexthop objects is a route with several ways")
    func nexthopGroup() throws {
        let path = try path(table(), entry: Kernel.entryNexthopGroup4, way: Kernel.way4)
        #expect(
            path.description == "satisfied via w0 (wiredEthernet) v4 gw 192.0.2.1 203.0.113.1")
    }

    @Test("IPv4 by an IPv6 router")
    func viaIPv6() throws {
        let path = try path(table(), entry: Kernel.entryViaIPv6, way: Kernel.wayViaIPv6)
        #expect(path.description == "satisfied via w1 (wiredEthernet) v4 gw fe80::1%w1")
    }

    @Test("a source that was asked about is not repeated, and is the source all the same")
    func source() throws {
        var requirement = PathRequirement()
        requirement.source = .v4(IPv4Address(192, 0, 2, 2))
        let path = try path(
            table(), entry: Kernel.entry4, way: Kernel.wayWithSource4, requirement)
        #expect(path.description == "satisfied via w0 (wiredEthernet) v4 gw 192.0.2.1")
    }

    @Test("an interface without an address")
    func noAddress() throws {
        var table = try table()
        _ = table.apply(.newLink(LinkMessage(12, "w2") { $0.flags = [.up, .lowerUp] }))
        let path = try path(table, entry: Kernel.entryNoAddress4, way: Kernel.wayNoAddress4)
        #expect(path.description == "unsatisfied (no usable address on w2)")
    }

    @Test("BR-076: a dormant interface needs a connection")
    func dormant() throws {
        let path = try path(
            table(Kernel.dormant), entry: Kernel.entryOnLink4, way: Kernel.invented4)
        #expect(path.description == "requiresConnection (w1 is dormant)")
    }

    @Test("a required interface without a route, for which IPv4 invents a way")
    func invented() throws {
        var requirement = PathRequirement()
        requirement.interface = "w1"
        let (none, invented) = try (answer(Kernel.entryNone4), answer(Kernel.invented4))
        let (entry, way) = try (answer(Kernel.entry4), answer(Kernel.way4))
        let evaluator = PathEvaluator(table: try table(), requirement: requirement, defaults: []) {
            if $0.destination.family == .ipv6 { return .failed(errno: 101) }
            if $0.interface == 11 { return $0.matchesTable ? none : invented }
            return $0.matchesTable ? entry : way
        }
        #expect(evaluator.path().obstacle == .interfaceExcluded)
    }

    @Test(
        "BR-080: what refuses is no path",
        arguments: [
            ("noRoute4", Path.Obstacle.noRoute), ("unreachable4", .unreachable),
            ("blackhole4", .blackhole), ("prohibit4", .prohibited),
        ])
    func refused(name: String, obstacle: Path.Obstacle) throws {
        let bytes = Kernel.named(name)
        let path = try path(table(), entry: bytes, way: bytes)
        #expect(path.status == .unsatisfied)
        #expect(path.ipv4 == .unusable(obstacle))
        #expect(path.interfaces == [])
    }

    @Test("BR-079: with its interface gone, a route that was answered before leads nowhere")
    func gone() throws {
        let path = try path(
            table(Kernel.deleted), entry: Kernel.entryOnLink4, way: Kernel.invented4)
        #expect(path.obstacle == .noRoute)
    }
}
