import Foundation
import TestSupport
import Testing
import Towpath

@Suite(
    "pathwatch, as its users meet it", .enabled(if: Tool.isAvailable), .timeLimit(.minutes(2)))
struct PathwatchTests {
    /// A namespace with one cable, for its `--netns`.
    private func bench() async throws -> PathBench? {
        guard await NetworkNamespace.isPossible("pathwatch") else { return nil }
        return try await PathBench()
    }

    @Test(
        "a wrong command line ends with status 2 and one clear line",
        arguments: [
            ("--frobnicate", "unknown argument --frobnicate"),
            ("--wait-for", "--wait-for needs a value"),
            ("--wait-for rain", "there is no such condition"),
            ("--wait-for up", "there is no such condition"),
            ("--timeout soon", "a duration is a number"),
            ("--timeout 5y", "a duration is a number"),
            ("--require wlan", "there is no such choice"), ("--mark -1", "not a number"),
            ("--from nowhere", "nowhere"), ("--to 300.1.1.1", "300.1.1.1"),
            ("--events rain", "there is no event rain"), ("--", "-- needs a command"),
        ])
    func usage(arguments: String, complaint: String) async throws {
        try await Tool.expectUsageError("exec $WATCH \(arguments)", complaint)
    }

    @Test("--help and --version print and end well; a namespace that is not there ends with 3")
    func simple() async throws {
        #expect(try await Tool.run("exec $WATCH --help").output.contains("--wait-for CONDITION"))
        #expect(try await Tool.run("exec $WATCH --version").output == "pathwatch 0.1.0\n")
        let end = try await Tool.run("exec $WATCH --once --netns nosuch-\(getpid())")
        #expect(end.status == 3)
        #expect(end.errors.contains("nosuch"))
        let unknown = try await Tool.run("exec $WATCH --once --to no-such-name.invalid")
        #expect(unknown.status == 4, "\(unknown)")
    }

    @Test("--once tells the path by its status, and why with --explain")
    func once() async throws {
        guard let bench = try await bench() else { return }
        let before = try await Tool.run(
            "exec $WATCH --once --explain --timestamps none --netns \(bench.namespace.name)")
        #expect(before.status == 1)
        #expect(before.output.hasPrefix("path   unsatisfied (no route)\n"), "\(before)")
        #expect(before.output.contains("IPv4: no route"))
        try await bench.ip("route add default via 192.0.2.1")
        let after = try await Tool.run(
            "exec $WATCH --once --timestamps none --netns \(bench.namespace.name)")
        #expect(after.status == 0)
        // The name servers are the host's, if it has some.
        #expect(
            after.output.replacing(" dns", with: "")
                == "path   satisfied via w0 (wiredEthernet) v4 gw 192.0.2.1\n", "\(after)")
    }

    @Test("a cable that is pulled, a route that is exchanged, and one that goes without a word")
    func changes() async throws {
        guard await NetworkNamespace.isPossible("pathwatch") else { return }
        let bench = try await PathBench(cables: 2)
        try await bench.ip("route add default via 192.0.2.1 dev w0 metric 100")
        let tool = try Tool.start(
            "exec $WATCH --events path --timestamps none --netns \(bench.namespace.name)")
        func next(_ text: String) async throws {
            // The addresses of links come later and make paths of their own.
            while true {
                let line = try await tool.line()
                if line.contains(text) { return }
                #expect(line.hasPrefix("path "), "\(line)")
            }
        }
        try await next("satisfied via w0")
        try await bench.ip("route add default via 192.0.2.17 dev w1 metric 50")
        try await next("via w1")
        try await bench.ip("route del default dev w1")
        try await next("via w0")
        try await bench.farIP("link set p0 down")
        try await next("satisfied -> unsatisfied (no carrier on w0)")
        try await bench.farIP("link set p0 up")
        try await next("unsatisfied -> satisfied")
        try await bench.ip("link set w0 down")
        try await next("satisfied -> unsatisfied")
    }

    @Test("--json gives one object a line, with the keys that are documented")
    func json() async throws {
        guard let bench = try await bench() else { return }
        let tool = try Tool.start(
            "exec $WATCH --json --gateways --events path,route --count 3 --netns \(bench.namespace.name)"
        )
        let first = try Self.object(try await tool.line())
        #expect(
            Set(first.keys) == ["v", "ts", "mono", "n", "type", "path"]
                && first["type"] as? String == "path" && first["n"] as? Int == 1)
        let path = try #require(first["path"] as? [String: Any])
        #expect(
            path["status"] as? String == "unsatisfied" && path["obstacle"] as? String == "no route")
        #expect(path["gatewayReachable"] is NSNull)
        try await bench.ip("neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 nud permanent dev w0")
        try await bench.ip("route add default via 192.0.2.1")
        let event = try Self.object(try await tool.line())
        #expect(event["type"] as? String == "route")
        #expect((event["if"] as? [String: Any])?["name"] as? String == "w0")
        #expect((event["new"] as? [String: String])?["gateway"] == "192.0.2.1")
        let second = try Self.object(try await tool.line())
        let satisfied = try #require(second["path"] as? [String: Any])
        #expect(satisfied["gateways"] as? [String] == ["192.0.2.1"])
        #expect(satisfied["gatewayReachable"] as? Bool == true)
        #expect(try await tool.end().status == 0)
    }

    private static func object(_ line: String) throws -> [String: Any] {
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
        return try #require(object as? [String: Any], "\(line)")
    }

    @Test("--wait-for waits, tells systemd, and gives up with 124")
    func waits() async throws {
        guard let bench = try await bench() else { return }
        let late = try await Tool.run(
            "exec $WATCH --wait-for satisfied --timeout 100ms --netns \(bench.namespace.name)")
        #expect(late.status == 124, "\(late)")
        let path = "/tmp/\(bench.namespace.name).notify"
        let systemd = try DatagramSocket(.unix(path))
        defer { unlink(path) }
        let tool = try Tool.start(
            "export NOTIFY_SOCKET=\(path); exec $WATCH --notify --hold 10ms --wait-for satisfied"
                + " --wait-for up:w0 --wait-for addr:w0 --wait-for gone:w9"
                + " --netns \(bench.namespace.name)")
        let status = String(decoding: try await systemd.receive().bytes, as: UTF8.self)
        #expect(status == "STATUS=unsatisfied (no route)\n")
        try await bench.ip("route add default via 192.0.2.1")
        var told = ""
        while !told.contains("READY=1") {
            told = String(decoding: try await systemd.receive().bytes, as: UTF8.self)
        }
        #expect(told.contains("STATUS=satisfied via w0"))
        #expect(try await tool.end().status == 0)
    }

    @Test("--once tells of a host by name only once its addresses are known")
    func onceToName() async throws {
        let end = try await Tool.run("exec $WATCH --once --timestamps none --to localhost")
        #expect(end.status == 0, "\(end)")
        #expect(end.output.contains("via lo (loopback)"), "\(end)")
    }

    @Test("--stats sums up at the end, also at one by a signal; rel counts from the start")
    func statistics() async throws {
        guard let bench = try await bench() else { return }
        let tool = try Tool.start(
            "exec $WATCH --stats --timestamps rel --netns \(bench.namespace.name)")
        let first = try await tool.line()
        #expect(first.contains(/^\+\d+\.\d{3}  path   unsatisfied/), "\(first)")
        tool.signal(SIGTERM)
        let end = try await tool.end()
        #expect(end.status == 128 + SIGTERM)
        #expect(end.errors.contains(/^pathwatch: 1 path.* in \d+\.\d{3} s\n$/), "\(end)")
    }

    @Test("what happens to the ports of a bridge is told with --all alone")
    func ports() async throws {
        guard let bench = try await bench() else { return }
        try await bench.ip("link add br0 type bridge")
        try await bench.ip("link set w0 master br0")
        let (name, options) = (bench.namespace.name, "--json --events link,path --count 2")
        let plain = try Tool.start("exec $WATCH \(options) --netns \(name)")
        let all = try Tool.start("exec $WATCH --all \(options) --netns \(name)")
        for tool in [plain, all] { _ = try await tool.line() }
        try await bench.ip("link set w0 mtu 1400")
        try await bench.ip("link set br0 up")
        #expect(try await plain.line().contains("br0"))
        #expect(try await all.line().contains("w0"))
    }

    @Test("a command runs for each other path, and not for the first")
    func command() async throws {
        guard let bench = try await bench() else { return }
        let tool = try Tool.start(
            "exec $WATCH --events gap --netns \(bench.namespace.name) -- sh -c"
                + " 'echo $PATHWATCH_SEQ $PATHWATCH_OLD_STATUS $PATHWATCH_STATUS $PATHWATCH_IF"
                + " $PATHWATCH_GATEWAY $PATHWATCH_IPV4$PATHWATCH_IPV6'")
        let table = try await Tool.run(
            "exec $WATCH --wait-for up:w0 --timeout 20s --netns \(bench.namespace.name)")
        #expect(table.status == 0)
        try await bench.ip("route add default via 192.0.2.1")
        #expect(try await tool.line() == "1 unsatisfied satisfied w0 192.0.2.1 10")
        tool.signal(SIGTERM)
        _ = try await tool.end()
    }
}
