import TestSupport
import Testing
import Towpath
import TowpathReactor

/// More corners: rules, IPv6, other kinds of interfaces, name servers, churn.
@Suite(
    "The path of a host, further", .enabled { await NetworkNamespace.isPossible("more paths") },
    .timeLimit(.minutes(3)))
struct PathMatrixMoreTests {
    @Test("8: of two ways one may be broken, and both may")
    func multipath() async throws {
        let bench = try await PathBench(cables: 2)
        try await bench.ip(
            "route add default nexthop via 192.0.2.1 dev w0 nexthop via 192.0.2.17 dev w1")
        // The kernel's hash decides which of them a packet takes, and that one stands first.
        let both = try await bench.satisfied()
        #expect(both.interfaces.map(\.name).sorted() == ["w0", "w1"] && !both.isDegraded)
        try await bench.farIP("link set p1 down")
        let one = try await bench.path("degraded") { $0.isDegraded }
        #expect(one.status == .satisfied)
        #expect(one.interfaces.map(\.name) == ["w0"])
        try await bench.farIP("link set p0 down")
        try await bench.path("no way") { $0.status == .unsatisfied }
    }

    @Test("11: a default route in a table of its own, by a rule")
    func ruleTable() async throws {
        let bench = try await PathBench()
        try await bench.ip("route add default via 192.0.2.1 table 100")
        #expect(bench.monitor.currentPath.obstacle == .noRoute)
        try await bench.ip("rule add from all lookup 100")
        try await bench.satisfied(via: "w0")
        try await bench.ip("rule del from all lookup 100")
        try await bench.obstacle(.noRoute)
    }

    @Test("12: rules for a user and a mark")
    func selectors() async throws {
        let bench = try await PathBench()
        try await bench.ip("route add default via 192.0.2.1")
        try await bench.ip("rule add uidrange 1000-1000 prohibit")
        try await bench.ip("rule add fwmark 7 unreachable")
        try await bench.satisfied()
        var configuration = PathMonitor.Configuration()
        configuration.namespace = "/run/netns/\(bench.namespace.name)"
        configuration.user = 1_000
        #expect(PathMonitor(configuration).currentPath.obstacle == .prohibited)
        configuration.user = nil
        configuration.mark = 7
        #expect(PathMonitor(configuration).currentPath.status == .unsatisfied)
    }

    @Test(
        "16, 18: IPv6 needs an address that is good for more than the link, as long as that lives")
    func sixOnly() async throws {
        let bench = try await PathBench()
        try await bench.ip("addr flush dev w0 scope global")
        try await bench.ip("-6 route add default via fe80::1 dev w0")
        try await bench.obstacle(.noAddress("w0"))
        try await bench.ip("addr add 2001:db8::2/64 dev w0 nodad")
        let path = try await bench.satisfied(via: "w0")
        #expect(path.supportsIPv6 && !path.supportsIPv4)
        #expect(path.gateways.map(\.description) == ["fe80::1%w0"])
        try await bench.ip("addr del 2001:db8::2/64 dev w0")
        try await bench.path("no address left") { $0.status == .unsatisfied }
        try await bench.ip("addr add 2001:db8::3/64 dev w0 nodad preferred_lft 1 valid_lft 2")
        try await bench.satisfied(via: "w0")
        try await bench.path("the address expired") { $0.status == .unsatisfied }
    }

    @Test("17: an address that is still being checked does not count yet, a duplicate never")
    func tentative() async throws {
        let bench = try await PathBench()
        try await bench.ip("addr flush dev w0 scope global")
        try await bench.farIP("addr add 2001:db8::2/64 dev p0 nodad")
        try await bench.ip("-6 route add default via fe80::1 dev w0")
        try await bench.ip("addr add 2001:db8::2/64 dev w0")
        try await bench.obstacle(.addressDuplicate("w0"))
        try await bench.ip("addr add 2001:db8::7/64 dev w0")
        let path = try await bench.satisfied(via: "w0")
        #expect(path.interfaces.first?.addresses.map(\.description).contains("2001:db8::7") == true)
    }

    @Test("21: a new name is an update, other changes of a link are none")
    func rename() async throws {
        let bench = try await PathBench()
        try await bench.ip("route add default via 192.0.2.1")
        // The link-local address comes a second or two later.
        let before = try await bench.path("both addresses") {
            $0.status == .satisfied && $0.interfaces.first?.addresses.count == 2
        }
        let log = PathLog(bench.monitor)
        for change in ["alias cable", "address 02:00:00:00:00:07", "promisc on"] {
            try await bench.ip("link set w0 \(change)")
        }
        try await bench.ip("link set w0 down")
        try await bench.ip("link set w0 name uplink")
        try await bench.ip("link set uplink up")
        try await bench.ip("route add default via 192.0.2.1")
        let after = try await bench.satisfied(via: "uplink")
        #expect(after.interfaces.first?.index == before.interfaces.first?.index)
        #expect(log.all.first == before)
    }

    @Test("22, 23, BR-079: an interface that comes again under its name or number is another one")
    func identity() async throws {
        let bench = try await PathBench()
        try await bench.ip("link add x0 index 100 type veth peer name x1")
        try await bench.ip("addr add 198.51.100.2/24 dev x0")
        try await bench.ip("link del x0")
        try await bench.ip("link add y0 index 100 type bridge")
        try await bench.ip("link set y0 up")
        try await bench.ip("route add default dev y0")
        // None of the addresses of the one that had the number.
        let other = try await bench.satisfied(via: "y0")
        #expect(other.interfaces.first?.index == 100)
        #expect(
            other.interfaces.first?.addresses.map(\.description).contains("198.51.100.2") == false)
        try await bench.ip("route del default dev y0")
        try await bench.ip("route add default via 192.0.2.1")
        try await bench.satisfied(via: "w0")
        try await bench.ip("link set w0 netns \(bench.far.name)")
        try await bench.path("moved away") { $0.status == .unsatisfied }
        try await bench.farIP("link set w0 netns \(bench.namespace.name)")
        try await bench.ip("link set w0 up")
        try await bench.ip("addr add 192.0.2.2/28 dev w0")
        try await bench.ip("route add default via 192.0.2.1")
        try await bench.satisfied(via: "w0")
    }

    @Test("24, 25: what is made of other interfaces is of their type and state")
    func layered() async throws {
        let bench = try await PathBench()
        try await bench.ip("addr flush dev w0")
        try await bench.ip("link add mv0 link w0 type macvlan")
        try await bench.ip("link set mv0 up")
        try await bench.ip("addr add 192.0.2.3/28 dev mv0")
        try await bench.ip("route add default via 192.0.2.1 dev mv0")
        let macvlan = try await bench.satisfied(via: "mv0")
        #expect(macvlan.interfaces.first?.type == .wiredEthernet)
        try await bench.farIP("link set p0 down")
        try await bench.obstacle(.noCarrier("mv0"))
        try await bench.farIP("link set p0 up")
        try await bench.satisfied(via: "mv0")
        try await bench.ip("link del mv0")
        try await bench.ip("link add br0 type bridge")
        try await bench.ip("link set br0 up")
        try await bench.ip("link set w0 master br0")
        try await bench.ip("addr add 192.0.2.4/28 dev br0")
        try await bench.ip("route add default via 192.0.2.1 dev br0")
        let bridge = try await bench.satisfied(via: "br0")
        #expect(bridge.interfaces.first?.type == .wiredEthernet)
        try await bench.farIP("link set p0 down")
        try await bench.obstacle(.noCarrier("br0"))
    }

    @Test("26: a tunnel that nobody holds open is an inactive VPN")
    func tunnel() async throws {
        let bench = try await PathBench()
        try await bench.ip("route add default via 192.0.2.1 metric 100")
        try await bench.ip("tuntap add dev tun9 mode tun")
        try await bench.ip("link set tun9 up")
        try await bench.ip("addr add 198.51.100.2/24 dev tun9")
        try await bench.ip("route add default dev tun9 metric 5")
        let path = try await bench.obstacle(.noCarrier("tun9"))
        #expect(path.unsatisfiedReason == .vpnInactive)
        #expect(path.interfaces.map(\.name) == ["w0"])
        try await bench.ip("link del tun9")
        try await bench.satisfied(via: "w0")
    }

    @Test("27: a dormant interface wants a connection")
    func dormant() async throws {
        let bench = try await PathBench()
        try await bench.ip("route add default via 192.0.2.1")
        try await bench.satisfied()
        try await bench.ip("link set w0 mode dormant")
        try await bench.ip("link set w0 down")
        try await bench.ip("link set w0 up")
        try await bench.ip("route add default via 192.0.2.1")
        try await bench.path("dormant") { $0.status == .requiresConnection }
        try await bench.ip("link set w0 state up")
        try await bench.satisfied(via: "w0")
    }

    @Test("30: name servers come and go with their file")
    func nameServers() async throws {
        let folder = "/tmp/towpath-dns-\(Environment.processID)"
        try await Program.succeed(["mkdir", "-p", folder])
        let file = "\(folder)/resolv.conf"
        let bench = try await PathBench { $0.resolverFile = file }
        try await bench.ip("route add default via 192.0.2.1")
        let path = try await bench.satisfied()
        #expect(!path.supportsDNS)
        func write(_ text: String, to name: String) async throws {
            let script = "echo '\(text)' > \(folder)/new && mv \(folder)/new \(folder)/\(name)"
            try await Program.succeed(["sh", "-c", script])
        }
        for _ in 0..<2 {
            try await write("nameserver 198.51.100.53", to: "resolv.conf")
            try await bench.path("a name server") { $0.supportsDNS }
            try await write("# none", to: "resolv.conf")
            try await bench.path("no name server") { !$0.supportsDNS }
        }
        try await write("nameserver 198.51.100.54", to: "other")
        try await Program.succeed(["ln", "-sf", "other", file])
        try await bench.path("a symlink to one") { $0.supportsDNS }
        try await write("# none", to: "other")
        try await bench.path("behind the symlink") { !$0.supportsDNS }
        try await Program.succeed(["rm", "-r", folder])
    }

    @Test("31, BR-077: containers that come and go elsewhere are no news")
    func noise() async throws {
        let bench = try await PathBench()
        try await bench.ip("route add default via 192.0.2.1")
        // The link-local address comes a second or two later.
        let before = try await bench.path("both addresses") {
            $0.status == .satisfied && $0.interfaces.first?.addresses.count == 2
        }
        let log = PathLog(bench.monitor)
        let script = """
            for n in $(seq 50); do
                ip link add c0 type veth peer name c1; ip link set c0 up; ip link set c1 up
                ip addr add 198.51.100.1/24 dev c0; ip link del c0
            done
            """
        try await Program.succeed(["ip", "netns", "exec", bench.namespace.name, "sh", "-c", script])
        try await bench.ip("link add last type bridge")
        let observer = bench.monitor
        await DatagramProbe.eventually { log.all.first == before }
        #expect(observer.currentPath == before)
        #expect(log.all.count == 1, "\(log.all)")
    }

    @Test("a namespace that is not there is a failure, said aloud")
    func noNamespace() async throws {
        var configuration = PathMonitor.Configuration()
        configuration.namespace = "/run/netns/nosuch"
        let monitor = PathMonitor(configuration)
        #expect(monitor.currentPath.status == .unsatisfied)
        #expect(monitor.failure?.message.contains("nosuch") == true)
        var count = 0
        for await _ in monitor { count += 1 }
        #expect(count == 1)
    }

    @Test("several iterate, each from the present path on; a cancelled one ends")
    func several() async throws {
        let bench = try await PathBench()
        var first = bench.monitor.makeAsyncIterator()
        #expect(await first.next()?.status == .unsatisfied)
        try await bench.ip("route add default via 192.0.2.1")
        #expect(await first.next()?.status == .satisfied)
        var second = bench.monitor.makeAsyncIterator()
        #expect(await second.next()?.status == .satisfied)
        let waiting = Task { [monitor = bench.monitor] in
            var count = 0
            for await _ in monitor { count += 1 }
            return count
        }
        waiting.cancel()
        #expect(await waiting.value <= 1)
    }
}
