import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite(
    "A storm of changes", .enabled { await NetworkNamespace.isPossible("churn") },
    .timeLimit(.minutes(3)))
struct PathChurnTests {
    /// One batch of ip(8): interfaces and addresses come and go at random.
    private func batch(_ rounds: Int, _ random: inout SplitMix64) -> String {
        var lines: [String] = []
        for _ in 0..<rounds {
            let number = Int.random(in: 0..<6, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0: lines.append("link add c\(number) type veth peer name d\(number)")
            case 1: lines.append("link del c\(number)")
            case 2: lines.append("link set c\(number) up")
            case 3: lines.append("link set d\(number) down")
            case 4: lines.append("addr add 198.51.100.\(number)/24 dev c\(number)")
            default: lines.append("addr del 198.51.100.\(number)/24 dev c\(number)")
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    @Test(
        "BR-074: what is known after it equals a fresh list, with any receive buffer",
        arguments: [4_096, 32_768, 1_048_576])
    func model(receiveBuffer: Int) async throws {
        let bench = try await PathBench { $0.receiveBufferSize = receiveBuffer }
        try await bench.ip("route add default via 192.0.2.1")
        try await bench.satisfied()
        var random = SplitMix64(seed: UInt64(receiveBuffer))
        for _ in 0..<10 {
            let script = "printf '\(batch(20, &random).replacing("\n", with: "\\n"))'"
            _ = try await Program.run([
                "ip", "netns", "exec", bench.namespace.name, "sh", "-c",
                script + " | ip -force -batch -",
            ])
        }
        await DatagramProbe.eventually("the table is not that of a fresh list") {
            bench.monitor.isInStep
        }
        #expect(bench.monitor.currentPath.status == .satisfied)
    }
}
