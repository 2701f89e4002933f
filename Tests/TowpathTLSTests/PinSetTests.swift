import Testing
import TowpathTLS

@Suite("Sets of pins")
struct PinSetTests {
    private static let leaf = pin("L")
    private static let intermediate = pin("I")
    private static let root = pin("R")
    private static let bogus = pin("X")
    private static let bogus2 = pin("Y")
    private static let chain = [leaf, intermediate, root]
    private static let malformed = Pin.sha256("malformed")

    private static func pin(_ letter: String) -> Pin {
        .sha256(letter + String(repeating: "A", count: 42) + "=")
    }

    struct Case: CustomTestStringConvertible, Sendable {
        let name: String
        var set: PinSet
        var host = "example.com"
        var chain = PinSetTests.chain
        let verdict: PinSet.Verdict
        var testDescription: String { name }
    }

    private static let mismatch = PinSet.Verdict.mismatch(offered: chain)

    @Test(
        "BR-026: one pin that matches anywhere in the chain is enough, and none is a mismatch",
        arguments: [
            Case(name: "an empty set", set: PinSet(pins: []), verdict: mismatch),
            Case(name: "no entries", set: PinSet([]), verdict: mismatch),
            Case(name: "{bogus, leaf}", set: PinSet(pins: [bogus, leaf]), verdict: .matched),
            Case(
                name: "{bogus, intermediate}", set: PinSet(pins: [bogus, intermediate]),
                verdict: .matched),
            Case(name: "{root}", set: PinSet(pins: [root]), verdict: .matched),
            Case(
                name: "the backup is the one in use",
                set: PinSet(pins: [bogus], backups: [leaf]), verdict: .matched),
            Case(name: "{bogus, bogus2}", set: PinSet(pins: [bogus, bogus2]), verdict: mismatch),
            Case(name: "{malformed}", set: PinSet(pins: [malformed]), verdict: mismatch),
            Case(
                name: "malformed against malformed", set: PinSet(pins: [malformed]),
                chain: [malformed], verdict: .mismatch(offered: [malformed])),
            Case(
                name: "no chain", set: PinSet(pins: [leaf]), chain: [],
                verdict: .mismatch(offered: [])),
        ])
    func oneIsEnough(row: Case) {
        #expect(row.set.verdict(chainPins: row.chain, host: row.host, now: 0) == row.verdict)
    }

    @Test("only the leaf counts if the set says so")
    func leafOnly() {
        var set = PinSet(pins: [Self.intermediate, Self.root])
        set.leafOnly = true
        #expect(set.verdict(chainPins: Self.chain, host: "a.b", now: 0) == Self.mismatch)
        set.entries[0].pins.append(Self.leaf)
        #expect(set.verdict(chainPins: Self.chain, host: "a.b", now: 0) == .matched)
    }

    @Test("pins are ignored after their last second, and a mismatch until then")
    func expiry() {
        var set = PinSet(pins: [Self.bogus], hosts: ["example.com"])
        set.expires = 1_000
        func verdict(_ host: String, _ now: Int64) -> PinSet.Verdict {
            set.verdict(chainPins: Self.chain, host: host, now: now)
        }
        #expect(verdict("example.com", 1_000) == Self.mismatch)
        #expect(verdict("example.com", 1_001) == .expired)
        #expect(verdict("example.org", 1_001) == .noPinsForHost)
        set = PinSet(pins: [])
        set.expires = 1_000
        #expect(verdict("example.com", 1_001) == Self.mismatch, "an empty set is never off")
    }

    @Test(
        "BR-026: hosts are compared in lower case, without a dot at the end, as labels",
        arguments: [
            ("example.com", "example.com", true), ("example.com", "EXAMPLE.com", true),
            ("EXAMPLE.com", "example.com", true), ("example.com", "example.com.", true),
            ("example.com.", "example.com", true), ("example.com", "www.example.com", false),
            ("example.com", "notexample.com", false), ("*.example.com", "a.example.com", true),
            ("*.example.com", "A.Example.COM.", true), ("*.example.com", "example.com", false),
            ("*.example.com", "a.b.example.com", false), ("*.example.com", "aexample.com", false),
            ("**.example.com", "example.com", true), ("**.example.com", "a.example.com", true),
            ("**.example.com", "a.b.example.com", true), ("**.example.com", "com", false),
            ("**.example.com", "aexample.com", false),
            ("xn--bcher-kva.example", "XN--bcher-kva.example", true),
            ("127.0.0.1", "127.0.0.1", true), ("127.0.0.1", "127.0.0.2", false),
            ("::1", "0:0:0:0:0:0:0:1", true), ("[::1]", "::1", true), ("::1", "::2", false),
            ("fe80::1", "fe80::1%eth0", true), ("*.0.0.example", "127.0.0.1", false),
            ("_dmarc.example", "_dmarc.example", true),
        ])
    func hosts(pattern: String, host: String, isMeant: Bool) throws {
        let set = PinSet(pins: [Self.leaf], backups: [Self.bogus], hosts: [pattern])
        try set.validate()
        let verdict = set.verdict(chainPins: Self.chain, host: host, now: 0)
        #expect(verdict == (isMeant ? .matched : .noPinsForHost))
    }

    @Test(
        "BR-026: a host that cannot be read is a mismatch if the pins are for some hosts",
        arguments: ["", ".", "bücher.example", "a..b", ".example.com", "*.example.com", "a b"])
    func unreadableHost(host: String) {
        let some = PinSet(pins: [Self.leaf], hosts: ["example.com"])
        #expect(some.verdict(chainPins: Self.chain, host: host, now: 0) == Self.mismatch)
        let all = PinSet(pins: [Self.leaf])
        #expect(all.verdict(chainPins: Self.chain, host: host, now: 0) == .matched)
    }

    @Test("several entries that mean a host give the union of their pins")
    func union() {
        let set = PinSet(pins: [Self.bogus], hosts: ["a.example.com"])
            .adding(pins: [Self.leaf], hosts: ["**.example.com"])
            .adding(pins: [Self.bogus2], hosts: ["b.example.com", "c.example.org"])
        func verdict(_ host: String) -> PinSet.Verdict {
            set.verdict(chainPins: Self.chain, host: host, now: 0)
        }
        #expect(verdict("a.example.com") == .matched)
        #expect(verdict("b.example.com") == .matched)
        #expect(verdict("c.example.org") == Self.mismatch)
        #expect(verdict("example.org") == .noPinsForHost)
        #expect(set.pins == [Self.bogus, Self.leaf, Self.bogus2])
        #expect(set.backups.isEmpty)
    }

    @Test(
        "BR-026: what can only be a mistake is refused when the set is configured",
        arguments: [
            (PinSet([]), "is empty"), (PinSet(pins: []), "has no pin"),
            (PinSet(pins: [], backups: [leaf]), "has no pin"),
            (PinSet(pins: [leaf]), "has no backup"), (PinSet(pins: [leaf, leaf]), "has no backup"),
            (PinSet(pins: [leaf, bogus]), "has no backup"),
            (PinSet(pins: [leaf], backups: [leaf]), "has no backup"),
            (PinSet(pins: [malformed], backups: [leaf]), "it has 6 bytes"),
            (PinSet(pins: [leaf], backups: [malformed]), "it has 6 bytes"),
            (
                PinSet(
                    pins: [leaf],
                    backups: [.sha256("qOpdUA/vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawg==")]),
                "it has 31 bytes"
            ),
            (PinSet(pins: [leaf], backups: [bogus], hosts: ["bücher.example"]), "A-labels"),
            (PinSet(pins: [leaf], backups: [bogus], hosts: [""]), "1 to 63 bytes"),
            (PinSet(pins: [leaf], backups: [bogus], hosts: ["*"]), "all of the first label"),
            (PinSet(pins: [leaf], backups: [bogus], hosts: ["a.*.b"]), "all of the first label"),
            (PinSet(pins: [leaf], backups: [bogus], hosts: ["f*.b"]), "all of the first label"),
            (PinSet(pins: [leaf], backups: [bogus], hosts: ["*.1.2.3.4"]), "an address"),
            (PinSet(pins: [leaf], backups: [bogus], hosts: ["01.2.3.4"]), "is no number"),
            (PinSet(pins: [leaf], backups: [bogus], hosts: ["https://a.b"]), "only letters"),
            (PinSet(pins: [leaf], backups: [bogus], hosts: ["a..b"]), "1 to 63 bytes"),
            (PinSet(pins: [leaf], backups: [bogus], hosts: ["a.b.."]), "1 to 63 bytes"),
            (PinSet(pins: [leaf], backups: [bogus]).adding(pins: [root]), "has no backup"),
        ])
    func refused(set: PinSet, reason: String) {
        let error = #expect(throws: CertificateError.self) { try set.validate() }
        #expect(error?.description.contains(reason) ?? false, "\(error?.description ?? "")")
    }

    @Test("a single pin without backup is possible if asked for, an empty or malformed one is not")
    func allowsNoBackup() throws {
        var set = PinSet(pins: [Self.leaf])
        set.allowsNoBackup = true
        try set.validate()
        set.entries[0].pins = []
        #expect(throws: CertificateError.self) { try set.validate() }
        set.entries[0].pins = [Self.malformed]
        #expect(throws: CertificateError.self) { try set.validate() }
    }
}
