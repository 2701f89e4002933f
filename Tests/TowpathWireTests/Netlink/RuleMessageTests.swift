import Testing
import TowpathWire

@Suite("RTM_NEWRULE and RTM_DELRULE")
struct RuleMessageTests {
    private func rules(_ bytes: [UInt8]) throws -> [RuleMessage] {
        try contents(of: bytes).compactMap { if case .rule(let rule) = $0 { rule } else { nil } }
    }

    @Test("the tables of a list, nil for what prohibits or jumps")
    func list() throws {
        let rules = try rules(Kernel.rules4)
        #expect(rules.map(\.table) == [255, 1_000, nil, nil, 254, 253])
        #expect(rules.allSatisfy { $0.family == .ipv4 })
        #expect(try contents(of: Kernel.rules4).last == .done(errno: 0))
    }

    @Test("those of IPv6")
    func list6() throws {
        #expect(try rules(Kernel.rules6).map(\.table) == [255, 254])
        #expect(try rules(Kernel.rules6).map(\.family) == [.ipv6, .ipv6])
    }

    @Test("a rule that comes and goes")
    func events() throws {
        #expect(try rules(Kernel.ruleEvents).map(\.table) == [100, 100])
        #expect(try messages(in: Kernel.ruleEvents).map(\.type) == [32, 33])
    }

    @Test("the rule for the tables of devices names no table")
    func device() throws {
        #expect(try rules(Kernel.rulesDevice).map(\.table) == [255, nil, 254, 253])
    }

    @Test("the table of the body counts where there is no attribute of it")
    func narrowTable() throws {
        let body: [UInt8] = [7, 0, 0, 0, 100, 0, 0, 1] + Made.zeros(4)
        let rule = try #require(try rules(Made.message(33, body)).first)
        #expect(rule.table == 100)
        #expect(rule.family == nil)
    }

    @Test("bodies and tables of a wrong size are refused")
    func malformed() {
        #expect(throws: NetlinkError.truncated(needed: 12, found: 11)) {
            try contents(of: Made.message(32, Made.zeros(11)))
        }
        #expect(throws: NetlinkError.attributeSize(type: 15, size: 1)) {
            try contents(of: Made.message(32, Made.zeros(12) + Made.attribute(15, [1])))
        }
    }
}
