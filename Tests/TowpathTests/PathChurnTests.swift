import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite(
    "A storm of changes", .enabled { await NetworkNamespace.isPossible("churn") },
    .timeLimit(.minutes(3)))
struct PathChurnTests {
    /// One line of ip(8): some of six pairs of interfaces, their addresses, routes and rules come and go
    /// at random.
    private func change(_ random: inout SplitMix64) -> String {
        let number = Int.random(in: 0..<6, using: &random)
        let metric = Int.random(in: 10..<13, using: &random)
        let isThere = Bool.random(using: &random)
        func comes(_ object: String, _ rest: String) -> String {
            "\(object) \(isThere ? "add" : "del") \(rest)"
        }
        switch Int.random(in: 0..<12, using: &random) {
        case 0, 1: return "link add c\(number) type veth peer name d\(number)"
        case 2: return "link del c\(number)"
        case 3, 4: return "link set c\(number) \(isThere ? "up" : "down")"
        case 5: return "link set d\(number) \(isThere ? "up" : "down")"
        case 6: return "link set c\(number) mtu \(1_300 + metric)"
        case 7: return comes("addr", "198.51.100.\(number)/24 dev c\(number)")
        case 8: return comes("addr", "2001:db8:\(number)::1/64 dev c\(number)")
        case 9: return comes("route", "default dev c\(number) metric \(metric)")
        case 10: return comes("route", "default via 192.0.2.1 dev w0 table \(100 + number)")
        default: return comes("rule", "pref \(100 + number) lookup \(100 + number)")
        }
    }

    /// One batch of ip(8): so many rounds of a few changes each.
    private func batch(_ rounds: Int, _ random: inout SplitMix64) -> String {
        var lines: [String] = []
        for _ in 0..<rounds {
            for _ in 0..<Int.random(in: 1...5, using: &random) { lines.append(change(&random)) }
        }
        return lines.map { "\($0)\n" }.joined()
    }

    /// What one who looks for the first time finds.
    private func freshPath(_ bench: PathBench) -> Path {
        var configuration = PathMonitor.Configuration()
        configuration.namespace = "/run/netns/\(bench.namespace.name)"
        configuration.resolverFile = "/nonexistent"
        // With options of its own it shares nothing with the monitor that went through the storm.
        configuration.coalescing = .milliseconds(19)
        return PathMonitor(configuration).currentPath
    }

    @Test(
        "BR-074: what is known after it equals a fresh list, with any receive buffer",
        arguments: [4_096, 32_768, 1_048_576])
    func model(receiveBuffer: Int) async throws {
        let bench = try await PathBench { $0.receiveBufferSize = receiveBuffer }
        try await bench.ip("route add default via 192.0.2.1")
        try await bench.satisfied()
        var random = SplitMix64(seed: UInt64(receiveBuffer))
        for part in 0..<10 {
            let script = "printf '\(batch(20, &random).replacing("\n", with: "\\n"))'"
            _ = try await Program.run([
                "ip", "netns", "exec", bench.namespace.name, "sh", "-c",
                script + " | ip -force -batch -",
            ])
            await DatagramProbe.eventually("\(part): the table is not that of a fresh list") {
                bench.monitor.isInStep
            }
            await DatagramProbe.eventually("\(part): the path is not that of a fresh monitor") {
                bench.monitor.currentPath == freshPath(bench)
            }
        }
    }
}
