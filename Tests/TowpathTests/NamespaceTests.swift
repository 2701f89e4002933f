import Foundation
import TestSupport
import Testing
import Towpath

/// What only a network of its own can show. Each test makes namespaces and runs one test of
/// `NamespaceInsideTests` in them.
@Suite("Network namespaces", .timeLimit(.minutes(2)))
struct NamespaceTests {
    /// Addresses of loopback; fd00:7::n and 10.7.0.n are the same host.
    private func loopback(_ count: Int) async throws -> NetworkNamespace {
        let namespace = try await NetworkNamespace()
        for number in 1...count {
            try await namespace.ip("addr", "add", "10.7.0.\(number)/32", "dev", "lo")
            try await namespace.ip("addr", "add", "fd00:7::\(number)/128", "dev", "lo", "nodad")
        }
        return namespace
    }

    /// False, said aloud, where the kernel has no nftables.
    private func firewall(_ namespace: NetworkNamespace, _ rules: String) async throws -> Bool {
        let file = FileManager.default.temporaryDirectory.appending(path: "\(namespace.name).nft")
        let table = """
            table inet towpath {
                chain output {
                    type filter hook output priority 0
                    \(rules)
                }
            }

            """
        try table.write(to: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: file) }
        do { try await namespace.execute("nft", "-f", file.path) } catch {
            skip("firewall rules: \(error)")
            return false
        }
        return true
    }

    /// Waits until a helper has said that it is ready.
    private func ready(_ program: Program) async throws {
        while try await !program.line().contains("ready") {}
    }

    @Test("BR-007 (a): a host 400 ms away on both families is reached")
    func farAway() async throws {
        guard await NetworkNamespace.isPossible("BR-007 (a)") else { return }
        let script = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../shared/conformance/tapnetem.py").standardized.path
        guard FileManager.default.fileExists(atPath: script),
            FileManager.default.fileExists(atPath: "/dev/net/tun")
        else { return skip("BR-007 (a): no tapnetem.py or no TAP devices") }
        let (near, far) = (try await NetworkNamespace(), try await NetworkNamespace())
        let netem = try Program([
            "python3", script, near.name, "10.78.0.1/24", far.name, "10.78.0.2/24", "--delay-ms",
            "400", "--seconds", "55",
        ])
        try await ready(netem)
        try await near.ip("addr", "add", "fd00:78::1/64", "dev", "sim0", "nodad")
        try await far.ip("addr", "add", "fd00:78::2/64", "dev", "sim0", "nodad")
        let server = try Program([
            "ip", "netns", "exec", far.name, "python3", "-c",
            """
            import socket, time
            s = socket.create_server(("", 7007), family=socket.AF_INET6, dualstack_ipv6=True)
            print("ready", flush=True)
            while True: s.accept()
            """,
        ])
        try await ready(server)
        try await near.run("insideFarAway")
        withExtendedLifetime((netem, server)) {}
    }

    @Test("BR-007 (b): where IPv6 packets vanish, IPv4 is used beside it")
    func dropped() async throws {
        guard await NetworkNamespace.isPossible("BR-007 (b)") else { return }
        let namespace = try await loopback(1)
        guard try await firewall(namespace, "ip6 daddr fd00:7::1 tcp dport 7007 drop") else {
            return
        }
        try await namespace.run("insideDropped")
    }

    @Test("BR-007 (c): where IPv6 is refused, IPv4 is used at once")
    func rejected() async throws {
        guard await NetworkNamespace.isPossible("BR-007 (c)") else { return }
        let namespace = try await loopback(1)
        let rule = "ip6 daddr fd00:7::1 tcp dport 7007 reject with tcp reset"
        guard try await firewall(namespace, rule) else { return }
        try await namespace.run("insideRejected")
    }

    @Test("BR-007 (d): where all packets vanish, one error lists the four attempts")
    func allDropped() async throws {
        guard await NetworkNamespace.isPossible("BR-007 (d)") else { return }
        let namespace = try await loopback(2)
        guard try await firewall(namespace, "tcp dport 7007 drop") else { return }
        try await namespace.run("insideAllDropped")
    }

    @Test("BR-014: with IPv6 disabled a listener on every address serves IPv4")
    func noIPv6() async throws {
        guard await NetworkNamespace.isPossible("BR-014 without IPv6") else { return }
        let namespace = try await NetworkNamespace()
        for interface in ["all", "default", "lo"] {
            try await namespace.execute(
                "sysctl", "-q", "-w", "net.ipv6.conf.\(interface).disable_ipv6=1")
        }
        try await namespace.run("insideNoIPv6")
    }

    @Test("with fast open the first bytes travel with the SYN; who waits for the peer connects too")
    func fastOpen() async throws {
        guard await NetworkNamespace.isPossible("fast open") else { return }
        let namespace = try await NetworkNamespace()
        try await namespace.execute("sysctl", "-q", "-w", "net.ipv4.tcp_fastopen=3")
        try await namespace.run("insideFastOpen")
    }

    @Test("a UDP listener on every address answers a broadcast from its own")
    func broadcast() async throws {
        guard await NetworkNamespace.isPossible("broadcast") else { return }
        let namespace = try await NetworkNamespace()
        try await namespace.ip("link", "add", "left", "type", "veth", "peer", "name", "right")
        for (address, link) in [("10.8.0.1/24", "left"), ("10.8.0.2/24", "right")] {
            try await namespace.ip("addr", "add", address, "broadcast", "+", "dev", link)
            try await namespace.ip("link", "set", link, "up")
        }
        try await namespace.run("insideBroadcast")
    }

    @Test("datagrams larger than the path's MTU are cut or refused, as was chosen")
    func fragmentation() async throws {
        guard await NetworkNamespace.isPossible("fragmentation") else { return }
        let namespace = try await loopback(1)
        try await namespace.ip("link", "set", "lo", "mtu", "1500")
        try await namespace.run("insideFragmentation")
    }
}
