import Testing
import TowpathWire

@Suite("Patterns of interface names")
struct PathRequirementTests {
    @Test(
        "stars and question marks",
        arguments: [
            ("eth0", "eth0", true), ("eth0", "eth1", false), ("eth0", "eth", false),
            ("eth0", "*", true), ("", "*", true), ("", "", true), ("", "?", false),
            ("eth0", "", false), ("eth0", "eth?", true), ("eth10", "eth?", false),
            ("eth10", "eth*", true), ("eth0", "eth0*", true), ("eth0", "**", true),
            ("wlp3s0", "wl*s?", true), ("wlp3s0", "wl*s", false), ("wwan0", "*wan*", true),
            ("aab", "*ab", true), ("aaab", "a*ab", true), ("abcab", "*ab", true),
            ("abab", "*a*b*", true), ("ba", "*a*b*", false), ("eth0", "????", true),
            ("eth0", "?????", false), ("a*b", "a*b", true), ("e[t]h", "e[t]h", true),
        ])
    func matches(name: String, pattern: String, isMatch: Bool) {
        #expect(PathRequirement.matches(name, pattern) == isMatch)
    }

    @Test("many stars take no more than the product of the lengths")
    func stars() {
        let name = String(repeating: "a", count: 2_000)
        let pattern = String(repeating: "*a", count: 200) + "b"
        #expect(!PathRequirement.matches(name, pattern))
    }
}
