import TestSupport
import Testing
import Towpath

@Suite(
    "A path monitor in bad times", .enabled { await NetworkNamespace.isPossible("paths") },
    .timeLimit(.minutes(2)))
struct PathFallbackTests {
    @Test("without netlink it looks at the network now and then, and says so")
    func polling() async throws {
        let bench = try await PathBench(cables: 0)
        try await bench.namespace.run("insidePolling")
    }

    @Test func insidePolling() async throws {
        guard NetworkNamespace.isInside() else { return }
        func ip(_ words: String) async throws {
            try await Program.succeed(["ip"] + words.split(separator: " ").map(String.init))
        }
        var configuration = PathMonitor.Configuration()
        configuration.resolverFile = "/nonexistent"
        let heard = PathMonitor(configuration)
        configuration.usesNetlink = false
        configuration.pollInterval = .milliseconds(10)
        let polled = PathMonitor(configuration)
        let none = try await polled.waitUntil(timeout: .seconds(20)) { _ in true }
        #expect(none.isPolled && none.status == .unsatisfied)
        try await ip("link add w0 type veth peer name p0")
        try await ip("link set w0 up")
        try await ip("link set p0 up")
        try await ip("addr add 192.0.2.2/24 dev w0")
        try await ip("addr add 198.51.100.2/24 dev w0 label w0:second")
        try await ip("addr add 2001:db8::2/64 dev w0 nodad")
        try await ip("route add default via 192.0.2.1")
        try await ip("route add default via 2001:db8::1")
        let isWhole: @Sendable (Path) -> Bool = {
            $0.supportsIPv4 && $0.supportsIPv6 && $0.interfaces.first?.addresses.count == 4
        }
        let path = try await polled.waitUntil(timeout: .seconds(20), isWhole)
        let same = try await heard.waitUntil(timeout: .seconds(20), isWhole)
        #expect(path.isPolled && !same.isPolled)
        let (first, other) = (path.interfaces.first, same.interfaces.first)
        #expect(first?.name == "w0" && first?.mtu == other?.mtu && first?.index == other?.index)
        #expect(Set(first?.addresses ?? []) == Set(other?.addresses ?? []))
        try await ip("link set p0 down")
        try await polled.waitUntil(timeout: .seconds(20)) { $0.status == .unsatisfied }
    }

    @Test("29: a namespace that is deleted is told of, and still monitored")
    func namespaceGone() async throws {
        let bench = try await PathBench()
        try await bench.ip("route add default via 192.0.2.1")
        try await bench.satisfied()
        let events = bench.monitor.events
        try await Program.succeed(["ip", "netns", "delete", bench.namespace.name])
        for await event in events where event.kind == .namespace {
            #expect(event.cause.contains(bench.namespace.name), "\(event)")
            break
        }
        // The far end of the cable is still there to be switched off.
        try await bench.farIP("link set p0 down")
        try await bench.obstacle(.noCarrier("w0"))
    }

    @Test("events that nobody takes in time end in one gap, where they are missing")
    func overflow() async throws {
        let bench = try await PathBench()
        let events = bench.monitor.events
        // So few at a time that the kernel keeps them all.
        for a in 1...20 {
            try await Program.succeed([
                "sh", "-c",
                "for b in $(seq 250); do echo addr add 10.0.\(a).$b/32 dev w0; done"
                    + " | ip -n \(bench.namespace.name) -batch -",
            ])
            await DatagramProbe.eventually { bench.monitor.isInStep }
        }
        var before = 0
        for await event in events {
            if event.kind == .gap { break }
            before += 1
        }
        #expect(before == 4_096)
        // From here on nothing is missing.
        try await bench.ip("link set w0 mtu 1400")
        let next = await events.first { _ in true }
        #expect(next?.new["mtu"] == "1400", "\(String(describing: next))")
    }

    @Test("a choice among many interfaces is made though the kernel has much to answer")
    func manyInterfaces() async throws {
        let bench = try await PathBench { $0.requiredInterfaceType = .wiredEthernet }
        try await Program.succeed([
            "sh", "-c",
            "for i in $(seq 200); do echo link add m$i type veth peer name n$i; done"
                + " | ip -n \(bench.namespace.name) -batch -",
        ])
        for _ in 0..<3 {
            try await bench.ip("route add default via 192.0.2.1")
            try await bench.satisfied(via: "w0")
            try await bench.ip("route del default")
            try await bench.path("no route") { $0.status == .unsatisfied }
        }
    }
}
