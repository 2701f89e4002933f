import TestSupport
import Testing
import Towpath

/// The corners that remain: several ways of IPv6, its routers, and hosts that switch it off.
///
/// Bonds, teams, VLANs, WireGuard and wireless cards are not here: few of the kernels that tests run on
/// have them all. What is made of what those tell is in `PathKindTests`, from messages made by hand.
@Suite(
    "The path of a host, the rest",
    .enabled { await NetworkNamespace.isPossible("the rest of the paths") },
    .timeLimit(.minutes(2)))
struct PathMatrixRestTests {
    /// A host without IPv4, with a global IPv6 address on each cable.
    private func sixBench(cables: Int = 1) async throws -> PathBench {
        let bench = try await PathBench(cables: cables)
        for number in 0..<cables {
            try await bench.ip("addr del 192.0.2.\(number * 16 + 2)/28 dev w\(number)")
            try await bench.ip("addr add 2001:db8:\(number)::2/64 dev w\(number) nodad")
        }
        return bench
    }

    @Test("9: of two ways of IPv6 one may lose its carrier, be switched off, or be deleted")
    func multipathSix() async throws {
        let bench = try await sixBench(cables: 2)
        let removals = Inbox<NetworkEvent>()
        let listening = Task { [events = bench.monitor.events] in
            for await event in events where event.cause.hasPrefix("DELROUTE w1 destination default")
            {
                removals.send(event)
            }
        }
        defer { listening.cancel() }
        try await bench.ip(
            "-6 route add default nexthop via 2001:db8:0::1 dev w0 nexthop via 2001:db8:1::1 dev w1"
        )
        let both = try await bench.satisfied()
        #expect(Set(both.interfaces.map(\.name)) == ["w0", "w1"])
        #expect(both.supportsIPv6 && !both.supportsIPv4 && !both.isDegraded)
        #expect(Set(both.gateways.map(\.description)) == ["2001:db8::1", "2001:db8:1::1"])

        func oneIsLeft(_ what: Comment) async throws {
            let one = try await bench.path(what) { $0.isDegraded }
            #expect(one.status == .satisfied)
            #expect(one.interfaces.map(\.name) == ["w0"])
            #expect(one.gateways.map(\.description) == ["2001:db8::1"])
        }
        func bothAreBack() async throws {
            try await bench.path("both") { !$0.isDegraded && $0.interfaces.count == 2 }
        }
        try await bench.farIP("link set p1 down")
        try await oneIsLeft("w1 without a carrier")
        try await bench.farIP("link set p0 down")
        try await bench.path("no way") { $0.status == .unsatisfied }
        try await bench.farIP("link set p0 up")
        try await oneIsLeft("w0 again")
        try await bench.farIP("link set p1 up")
        try await bothAreBack()
        try await bench.ip("link set w1 down")
        try await oneIsLeft("w1 switched off")
        try await bench.ip("link set w1 up")
        try await bothAreBack()
        try await bench.ip("link set w1 down")
        try await oneIsLeft("w1 switched off again")
        // Only with the interface does its way go, and only then is the route whole again.
        let list = try await Program.run(
            ["ip", "-n", bench.namespace.name, "-6", "route", "show", "default"])
        #expect(list.output.contains("dev w1 weight 1 dead"), "\(list.output)")
        try await bench.ip("link del w1")
        let whole = try await bench.path("w1 deleted") { !$0.isDegraded }
        #expect(whole.status == .satisfied)
        #expect(whole.interfaces.map(\.name) == ["w0"])
        _ = try await removals.next()
        try await bench.ip("link set w0 down")
        try await bench.obstacle(.interfaceDown("w0"))
    }

    /// A router advertisement without options (RFC 4861 §4.2), with a lifetime in seconds, from `p0`.
    private static let advertisement = """
        import socket, struct, sys
        socket_ = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
        socket_.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        index = socket.if_nametoindex("p0")
        socket_.bind(("fe80::99", 0, 0, index))
        message = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, int(sys.argv[1]), 0, 0)
        socket_.sendto(message, ("ff02::1", 0, 0, index))
        """

    private func advertise(_ lifetime: Int, _ bench: PathBench) async throws {
        try await bench.far.execute("python3", "-c", Self.advertisement, "\(lifetime)")
    }

    private func routerBench() async throws -> PathBench {
        let bench = try await sixBench()
        try await bench.namespace.execute(
            "sysctl", "-q", "-w", "net.ipv6.conf.w0.forwarding=0", "net.ipv6.conf.w0.accept_ra=1")
        try await bench.farIP("addr add fe80::99/64 dev p0 nodad")
        return bench
    }

    /// Whether the kernel still lists the router's route, which may have ended long before.
    private func isListed(_ bench: PathBench) async throws -> Bool {
        try await Program.run(
            ["ip", "-n", bench.namespace.name, "-6", "route", "show", "default"]
        ).output.contains("fe80::99")
    }

    @Test("19: the route of a router ends with its lifetime, long before the kernel tells")
    func routerLifetime() async throws {
        guard Program.has("python3") else { return }
        let bench = try await routerBench()
        try await advertise(3, bench)
        let path = try await bench.satisfied(via: "w0")
        #expect(path.gateways.map(\.description) == ["fe80::99%w0"])
        #expect(path.supportsIPv6 && !path.supportsIPv4)
        try await bench.monitor.waitUntil(timeout: .seconds(15)) { $0.status == .unsatisfied }
        #expect(bench.monitor.currentPath.obstacle == .noRoute)
        #expect(try await isListed(bench))
        // The kernel does not tell of this one either: the route that it has not dropped yet lives on.
        try await advertise(1_800, bench)
        try await bench.monitor.waitUntil(timeout: .seconds(15)) { $0.status == .satisfied }
    }

    @Test("19: a router that takes its leave is gone at once")
    func routerLeaves() async throws {
        guard Program.has("python3") else { return }
        let bench = try await routerBench()
        try await advertise(1_800, bench)
        try await bench.satisfied(via: "w0")
        try await advertise(0, bench)
        try await bench.obstacle(.noRoute)
        #expect(try await !isListed(bench))
        try await advertise(1_800, bench)
        try await bench.satisfied(via: "w0")
    }

    @Test("19: a router that renews its lifetime stays, past the one that it had")
    func routerRenews() async throws {
        guard Program.has("python3") else { return }
        let bench = try await routerBench()
        try await advertise(5, bench)
        try await bench.satisfied(via: "w0")
        let log = PathLog(bench.monitor)
        try await advertise(8, bench)
        try await bench.monitor.waitUntil(timeout: .seconds(20)) { $0.status == .unsatisfied }
        await DatagramProbe.eventually { log.all.last?.status == .unsatisfied }
        // Once only: not at the end of the first lifetime and again at that of the second.
        #expect(log.all.count { $0.status == .unsatisfied } == 1, "\(log.all)")
        #expect(log.all.first?.status == .satisfied)
    }

    @Test("20: IPv6 that is switched off takes addresses and routes along, and may come again")
    func disabled() async throws {
        let bench = try await PathBench()
        func disable(_ value: Int) async throws {
            try await bench.namespace.execute(
                "sysctl", "-q", "-w", "net.ipv6.conf.w0.disable_ipv6=\(value)")
        }
        func addRoute() async throws {
            try await bench.ip("addr add 2001:db8::2/64 dev w0 nodad")
            try await bench.ip("-6 route add default via 2001:db8::1 dev w0")
        }
        try await bench.ip("route add default via 192.0.2.1")
        try await addRoute()
        try await bench.path("both families") { $0.supportsIPv4 && $0.supportsIPv6 }
        try await disable(1)
        let four = try await bench.path("IPv4 alone") { !$0.supportsIPv6 }
        #expect(four.status == .satisfied && four.supportsIPv4)
        #expect(four.interfaces.first?.addresses.map(\.description) == ["192.0.2.2"])
        #expect(four.gateways.map(\.description) == ["192.0.2.1"])
        await #expect(throws: Program.Failure.self) { try await addRoute() }
        try await disable(0)
        try await addRoute()
        let both = try await bench.path("both again") { $0.supportsIPv6 }
        #expect(both.supportsIPv4)
        // Without IPv4, nothing is left.
        try await bench.ip("route del default")
        try await bench.path("IPv6 alone") { $0.supportsIPv6 && !$0.supportsIPv4 }
        try await disable(1)
        try await bench.obstacle(.noRoute)
        await DatagramProbe.eventually { bench.monitor.isInStep }
    }

    /// One packet by the gateway, for which the kernel has to ask for it.
    private func send(_ bench: PathBench, to address: String = "1.1.1.1") async throws {
        try await bench.namespace.execute("bash", "-c", "echo > /dev/udp/\(address)/9")
    }

    @Test(
        "33: a gateway that does not answer is told within 4.5 s, and the path stays satisfied",
        arguments: [AddressFamily.ipv4, .ipv6])
    func gateway(family: AddressFamily) async throws {
        let bench = try await PathBench { $0.watchesGateways = true }
        let (gateway, target) =
            family == .ipv4 ? ("192.0.2.1", "1.1.1.1") : ("2001:db8::1", "2001:db8:9::1")
        if family == .ipv6 { try await bench.ip("addr add 2001:db8::2/64 dev w0 nodad") }
        try await bench.ip(
            "\(family == .ipv4 ? "-4" : "-6") route add default via \(gateway) dev w0")
        let unknown = try await bench.satisfied(via: "w0")
        #expect(unknown.isGatewayReachable == nil)
        // Whoever does not ask for it hears nothing of it.
        var plain = PathMonitor.Configuration()
        plain.namespace = "/run/netns/\(bench.namespace.name)"
        plain.resolverFile = "/nonexistent"
        let other = PathMonitor(plain)
        let start = ContinuousClock.now
        try await send(bench, to: target)
        let silent = try await bench.path("no answer") { $0.isGatewayReachable == false }
        #expect(ContinuousClock.now - start < .milliseconds(4_500))
        #expect(silent.status == .satisfied)
        #expect(silent.gateways.map(\.description) == [gateway])
        #expect(silent.description.hasSuffix("(gateway does not answer)"))
        #expect(other.currentPath.isGatewayReachable == nil)
        let length = family == .ipv4 ? "28" : "64 nodad"
        try await bench.farIP("addr add \(gateway)/\(length) dev p0")
        try await send(bench, to: target)
        let answered = try await bench.path("an answer") { $0.isGatewayReachable == true }
        #expect(answered.status == .satisfied)
        // Deleted, the kernel knows nothing of it any more.
        try await bench.ip("neigh del \(gateway) dev w0")
        try await bench.path("deleted") { $0.isGatewayReachable == nil }
    }

    @Test("33: neighbours that are no gateway, and a gateway that is as it was, evaluate nothing")
    func otherNeighbors() async throws {
        let bench = try await PathBench {
            $0.watchesGateways = true
            // Each that counts would be evaluated by itself.
            $0.coalescing = .zero
        }
        try await bench.namespace.execute(
            "sysctl", "-q", "-w", "net.ipv6.conf.w0.disable_ipv6=1")
        try await bench.ip("route add default via 192.0.2.1")
        try await bench.satisfied(via: "w0")
        func neighbor(_ address: String, _ state: String) async throws {
            try await bench.ip(
                "neigh replace \(address) lladdr 02:00:00:00:00:99 nud \(state) dev w0")
        }
        try await neighbor("192.0.2.1", "permanent")
        try await bench.path("permanent") { $0.isGatewayReachable == true }
        let count = bench.monitor.evaluationCount
        for number in 3..<13 { try await neighbor("192.0.2.\(number)", "permanent") }
        try await neighbor("192.0.2.1", "stale")
        // Behind them comes what does evaluate: a failure, and that it is gone.
        try await bench.ip("neigh del 192.0.2.1 dev w0")
        try await bench.path("deleted") { $0.isGatewayReachable == nil }
        let more = bench.monitor.evaluationCount - count
        #expect((1...4).contains(more), "\(more)")
    }
}

/// The process under test is stopped, so that it is another one, in a namespace of its own.
@Suite("The path of a host, after a stop", .timeLimit(.minutes(2)))
struct PathStopTests {
    @Test("28, BR-074: what happened while the process was stopped is a gap, and then known")
    func stopped() async throws {
        guard await NetworkNamespace.isPossible("a stopped process") else { return }
        try await NetworkNamespace().run("insideStopped")
    }

    @Test func insideStopped() async throws {
        guard NetworkNamespace.isInside() else { return }
        for command in [
            "link add w0 type veth peer name p0", "link set w0 up", "link set p0 up",
            "addr add 192.0.2.2/28 dev w0", "route add default via 192.0.2.1",
        ] {
            try await Program.succeed(["ip"] + command.split(separator: " ").map(String.init))
        }
        var configuration = PathMonitor.Configuration()
        configuration.receiveBufferSize = 4_096
        let monitor = PathMonitor(configuration)
        try await monitor.waitUntil(timeout: .seconds(20)) { $0.status == .satisfied }
        let events = monitor.events
        let log = PathLog(monitor)
        let script = """
            trap 'kill -CONT $PPID' EXIT
            kill -STOP $PPID
            until grep -q '^State:.T' /proc/$PPID/status; do :; done
            for number in $(seq 500); do
                echo "link add x$number type veth peer name y$number"
            done | ip -batch -
            """
        try await Program.succeed(["sh", "-c", script])
        var gap: NetworkEvent?
        for await event in events where event.kind == .gap {
            gap = event
            break
        }
        #expect(gap?.cause.hasPrefix("the receive buffer was full; resynchronised: ") == true)
        await DatagramProbe.eventually("the table is not that of a fresh list") {
            monitor.isInStep
        }
        // The path was there all the time, and one thousand other interfaces are no news.
        await DatagramProbe.eventually { !log.all.isEmpty }
        #expect(log.all.allSatisfy { $0.status == .satisfied })
        #expect(monitor.currentPath.interfaces.map(\.name) == ["w0"])
        // And what comes now is heard as before.
        try await Program.succeed(["ip", "link", "set", "p0", "down"])
        try await monitor.waitUntil(timeout: .seconds(20)) { $0.obstacle == .noCarrier("w0") }
    }
}
