import TestSupport
import Testing
import Towpath

/// The corners of the kernel's networking, in namespaces. The numbers are those of the matrix from which
/// the monitor was designed.
@Suite(
    "The path of a host", .enabled { await NetworkNamespace.isPossible("paths") },
    .timeLimit(.minutes(2)))
struct PathMatrixTests {
    @Test("1: with the loopback alone there is no route")
    func loopbackOnly() async throws {
        let bench = try await PathBench(cables: 0)
        let path = bench.monitor.currentPath
        #expect(path.status == .unsatisfied)
        #expect(path.unsatisfiedReason == .notAvailable)
        #expect(path.obstacle == .noRoute)
        #expect(path.interfaces.isEmpty)
    }

    @Test("2: where the cable is out there is no carrier, though the route stays")
    func carrier() async throws {
        let bench = try await PathBench()
        try await bench.ip("route add default via 192.0.2.1")
        let path = try await bench.satisfied(via: "w0")
        #expect(path.supportsIPv4 && !path.supportsIPv6)
        #expect(path.gateways.map(\.description) == ["192.0.2.1"])
        #expect(path.interfaces.first?.type == .wiredEthernet)
        #expect(path.interfaces.first?.mtu == 1_500)
        try await bench.farIP("link set p0 down")
        try await bench.obstacle(.noCarrier("w0"))
        try await bench.farIP("link set p0 up")
        try await bench.satisfied(via: "w0")
    }

    @Test("3, BR-073 (a): an IPv4 route goes without a word when its interface is switched off")
    func silentLoss() async throws {
        let bench = try await PathBench()
        try await bench.ip("route add default via 192.0.2.1")
        try await bench.satisfied()
        try await bench.ip("link set w0 down")
        try await bench.obstacle(.interfaceDown("w0"))
        try await bench.ip("link set w0 up")
        try await bench.obstacle(.noRoute)
        try await bench.ip("route add default via 192.0.2.1")
        try await bench.satisfied(via: "w0")
    }

    @Test("4: a default route that is exchanged is one update, without a gap")
    func swap() async throws {
        let bench = try await PathBench(cables: 2)
        try await bench.ip("route add default via 192.0.2.1 dev w0 metric 100")
        try await bench.ip("route add default via 192.0.2.17 dev w1 metric 50")
        let first = try await bench.satisfied(via: "w1")
        #expect(first.interfaces.map(\.name) == ["w1", "w0"])
        let log = PathLog(bench.monitor)
        // In one command, as one who exchanges a route does.
        try await Program.succeed([
            "ip", "netns", "exec", bench.namespace.name, "sh", "-c",
            "printf 'route del default dev w1\\nroute add default via 192.0.2.17 dev w1 metric 200\\n'"
                + " | ip -batch -",
        ])
        try await bench.satisfied(via: "w0")
        await DatagramProbe.eventually { log.all.last?.interfaces.first?.name == "w0" }
        #expect(log.all.allSatisfy { $0.status == .satisfied })
        #expect(log.all.count <= 2)
    }

    @Test("5: the kernel's choice counts, though its cable is out and another route is well")
    func deadChoice() async throws {
        let bench = try await PathBench(cables: 2)
        try await bench.ip("route add default via 192.0.2.1 dev w0 metric 100")
        try await bench.ip("route add default via 192.0.2.17 dev w1 metric 200")
        try await bench.satisfied(via: "w0")
        try await bench.farIP("link set p0 down")
        let path = try await bench.obstacle(.noCarrier("w0"))
        #expect(path.interfaces.map(\.name) == ["w1"])
        try await Program.succeed([
            "ip", "netns", "exec", bench.namespace.name, "sysctl", "-q", "-w",
            "net.ipv4.conf.all.ignore_routes_with_linkdown=1",
        ])
        try await bench.farIP("link set p0 up")
        try await bench.satisfied(via: "w0")
        try await bench.farIP("link set p0 down")
        try await bench.satisfied(via: "w1")
    }

    @Test("6, BR-073 (b): the last address takes the default route along")
    func lastAddress() async throws {
        let bench = try await PathBench()
        try await bench.ip("route add default via 192.0.2.1")
        try await bench.satisfied()
        try await bench.ip("addr del 192.0.2.2/28 dev w0")
        try await bench.obstacle(.noRoute)
    }

    @Test(
        "7, BR-080: routes that refuse are no path",
        arguments: [
            ("unreachable", Path.Obstacle.unreachable), ("prohibit", .prohibited),
            ("blackhole", .blackhole), ("throw", .noRoute),
        ])
    func refusing(kind: String, obstacle: Path.Obstacle) async throws {
        let bench = try await PathBench()
        try await bench.ip("route add default via 192.0.2.1 metric 100")
        try await bench.satisfied()
        try await bench.ip("route add \(kind) default metric 10")
        try await bench.obstacle(obstacle)
        try await bench.ip("route del \(kind) default metric 10")
        try await bench.satisfied(via: "w0")
    }

    @Test("10, BR-073 (d): a nexthop object that goes takes its routes along")
    func nexthop() async throws {
        let bench = try await PathBench()
        try await bench.ip("nexthop add id 7 via 192.0.2.1 dev w0")
        try await bench.ip("route add default nhid 7")
        let path = try await bench.satisfied(via: "w0")
        #expect(path.gateways.map(\.description) == ["192.0.2.1"])
        try await bench.ip("nexthop del id 7")
        try await bench.obstacle(.noRoute)
    }

    @Test("13: two halves make a whole")
    func halves() async throws {
        let bench = try await PathBench()
        try await bench.ip("route add 0.0.0.0/1 via 192.0.2.1")
        try await bench.ip("route add 128.0.0.0/1 via 192.0.2.1")
        try await bench.satisfied(via: "w0")
    }

    @Test("14: a default route without a gateway, and one by way of IPv6")
    func gateways() async throws {
        let bench = try await PathBench()
        try await bench.ip("route add default dev w0")
        let onLink = try await bench.satisfied(via: "w0")
        #expect(onLink.gateways.isEmpty)
        try await bench.ip("route del default dev w0")
        try await bench.ip("-4 route add default via inet6 fe80::1 dev w0")
        let path = try await bench.path("by way of IPv6") { !$0.gateways.isEmpty }
        #expect(path.gateways.map(\.description) == ["fe80::1%w0"])
    }

    @Test("15: a route without an address to leave from is no path")
    func noAddress() async throws {
        let bench = try await PathBench()
        try await bench.ip("addr flush dev w0")
        try await bench.ip("route add default dev w0")
        try await bench.obstacle(.noAddress("w0"))
    }

    @Test("BR-073 (c): deleting the peer deletes the path")
    func peerDeleted() async throws {
        let bench = try await PathBench()
        try await bench.ip("route add default via 192.0.2.1")
        try await bench.satisfied()
        try await bench.farIP("link del p0")
        try await bench.obstacle(.noRoute)
    }
}
