/// What a kernel (Linux 6.18, x86_64) sent to a netlink socket in a namespace of its own, as bytes.
/// Messages of one answer or of one event stand one behind the other.
///
/// w0 has the index 10 and 192.0.2.2/24, w1 has 11 and 203.0.113.2/24; both are veth interfaces.
enum Kernel {
    static func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        return stride(from: 0, to: digits.count - 1, by: 2).map {
            UInt8(digits[$0] << 4 | digits[$0 + 1])
        }
    }

    /// By name, for tests that treat all alike.
    static let all: [(name: String, bytes: [UInt8])] = [
        ("links", links), ("kinds", kinds), ("up", up), ("renamed", renamed),
        ("bridgePort", bridgePort), ("bridgePortLeft", bridgePortLeft), ("moved", moved),
        ("deleted", deleted), ("reused", reused), ("withoutCarrier", withoutCarrier),
        ("switchedOff", switchedOff), ("emptyBridge", emptyBridge), ("tunOpened", tunOpened),
        ("tunClosed", tunClosed), ("macvlanLowerDown", macvlanLowerDown), ("dormant", dormant),
        ("testing", testing), ("addresses", addresses), ("pointToPoint", pointToPoint),
        ("tentative", tentative), ("optimistic", optimistic), ("duplicate", duplicate),
        ("routes4", routes4), ("routes6", routes6), ("withUnreachable6", withUnreachable6),
        ("default4", default4), ("default4Second", default4Second), ("replaced4", replaced4),
        ("removed4", removed4), ("expiring6", expiring6), ("multipath4", multipath4),
        ("multipath6", multipath6), ("nexthop", nexthop), ("viaIPv6", viaIPv6), ("halves", halves),
        ("table1000", table1000), ("way4", way4), ("entry4", entry4), ("way6", way6),
        ("entry6", entry6), ("invented4", invented4), ("entryNone4", entryNone4),
        ("wayLocal4", wayLocal4), ("entryLocal4", entryLocal4), ("wayLocal6", wayLocal6),
        ("entryLocal6", entryLocal6), ("wayLinkLocal6", wayLinkLocal6),
        ("entryLinkLocal6", entryLinkLocal6), ("wayWithSource4", wayWithSource4),
        ("entryMultipath4", entryMultipath4), ("wayMultipath4", wayMultipath4),
        ("entryMultipathLinkDown4", entryMultipathLinkDown4),
        ("entryMultipathDead4", entryMultipathDead4), ("entryNexthopGroup4", entryNexthopGroup4),
        ("wayViaIPv6", wayViaIPv6), ("entryViaIPv6", entryViaIPv6), ("entryOnLink4", entryOnLink4),
        ("wayNoAddress4", wayNoAddress4), ("entryNoAddress4", entryNoAddress4), ("rules4", rules4),
        ("rules6", rules6), ("rulesDevice", rulesDevice), ("ruleEvents", ruleEvents),
        ("noRoute4", noRoute4), ("noRoute6", noRoute6), ("unreachable4", unreachable4),
        ("blackhole4", blackhole4), ("prohibit4", prohibit4), ("refusedFlag", refusedFlag),
        ("refusedFlagCapped", refusedFlagCapped), ("acknowledged", acknowledged),
        ("noSuchLink", noSuchLink), ("missingTable", missingTable),
        ("neighborNone4", neighborNone4), ("neighborAsked4", neighborAsked4),
        ("neighborFailed4", neighborFailed4), ("neighborKnown4", neighborKnown4),
        ("neighborFailed6", neighborFailed6), ("neighborKnown6", neighborKnown6),
        ("neighborStates4", neighborStates4), ("neighborRemoved4", neighborRemoved4),
        ("neighborBridge", neighborBridge),
    ]

    static func named(_ name: String) -> [UInt8] {
        all.first { $0.name == name }?.bytes ?? []
    }
}
