import CTowpathLinux
import Testing
import TowpathReactor

@Suite("Processor count")
struct ProcessorCountTests {
    @Test(
        "the group of version 2 and those above it are asked",
        arguments: [
            ("0::/\n", [""]),
            ("0::/system.slice\n", ["/system.slice"]),
            ("0::/a/b.service/c\n", ["/a/b.service/c", "/a/b.service", "/a"]),
            ("12:cpu,cpuacct:/old\n1:name=systemd:/x\n0::/new\n", ["/new"]),
            ("0::/one", ["/one"]),
            ("0::/with space/and:colon\n", ["/with space/and:colon", "/with space"]),
        ])
    func groups(membership: String, paths: [String]) {
        #expect(ProcessorCount.paths(membership: membership).prefix(paths.count) == paths[...])
    }

    @Test("the root is asked too: that of a container's namespace has the container's quota")
    func namespaceRoot() {
        #expect(ProcessorCount.paths(membership: "0::/init.scope\n") == ["/init.scope", ""])
    }

    @Test(
        "without a group of version 2 none is asked",
        arguments: ["", "\n", "4:cpu:/a\n", "0::", "10::/a\n", "nonsense"])
    func noGroup(membership: String) {
        #expect(ProcessorCount.paths(membership: membership) == [])
    }

    @Test(
        "a quota is its part of the period",
        arguments: [
            ("100000 100000\n", 1), ("150000 100000\n", 1.5), ("50000 100000", 0.5),
            ("400000 100000\n", 4), ("1000 1000000\n", 0.001),
        ])
    func quota(text: String, expected: Double) {
        #expect(ProcessorCount.quota(cpuMax: text) == expected)
    }

    @Test(
        "what is no quota does not bound",
        arguments: ["max 100000\n", "", "\n", "max", "100000", "100000 0", "1 2 3", "a b"])
    func noQuota(text: String) {
        #expect(ProcessorCount.quota(cpuMax: text) == nil)
    }

    @Test("the process may use at least one processor and no more than its mask")
    func usable() {
        #expect(ProcessorCount.usable >= 1)
        #expect(ProcessorCount.usable <= Int(shim_affinity_count()))
    }
}
