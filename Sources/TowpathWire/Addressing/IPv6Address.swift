/// An IPv6 address, with the zone that a link-local one needs.
///
/// Two addresses that differ only in their zone are different: they name different hosts.
public struct IPv6Address: Hashable, Comparable, Sendable {
    /// The first and the last 64 bits, each a number in the byte order of the host.
    package let high: UInt64, low: UInt64

    /// The name or the index of the interface that the address is reached by (RFC 4007 §11).
    public let zone: String?

    package init(high: UInt64, low: UInt64, zone: String? = nil) {
        self.high = high
        self.low = low
        self.zone = zone
    }

    /// The address with these 16 bytes in network order; `nil` if there are not 16 of them, or if
    /// the zone cannot be the name of an interface.
    public init?(bytes: [UInt8], zone: String? = nil) {
        guard bytes.count == 16, zone.map(Self.isZone) ?? true else { return nil }
        var (high, low): (UInt64, UInt64) = (0, 0)
        for byte in bytes {
            high = high << 8 | low >> 56
            low = low << 8 | UInt64(byte)
        }
        self.init(high: high, low: low, zone: zone)
    }

    /// The address as which an IPv6 socket shows an IPv4 peer: `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2).
    public init(ipv4Mapped address: IPv4Address) {
        self.init(high: 0, low: 0xFFFF << 32 | UInt64(address.rawValue))
    }

    /// The IPv4 address in an IPv4-mapped one.
    public var ipv4Mapped: IPv4Address? {
        guard high == 0, low >> 32 == 0xFFFF else { return nil }
        return IPv4Address(rawValue: UInt32(truncatingIfNeeded: low))
    }

    /// The same address in another zone, or in none.
    public func withZone(_ zone: String?) throws(AddressError) -> IPv6Address {
        if let zone, !Self.isZone(zone) { throw AddressError(zone, Self.zoneReason) }
        return IPv6Address(high: high, low: low, zone: zone)
    }

    /// The 16 bytes in network order, without the zone.
    public var bytes: [UInt8] {
        [high, low].flatMap { half in
            stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: half >> $0) }
        }
    }

    /// The order of the numbers, then of the zones.
    public static func < (left: Self, right: Self) -> Bool {
        (left.high, left.low, left.zone ?? "") < (right.high, right.low, right.zone ?? "")
    }

    /// `::`: to a listener, every local address, of IPv4 too.
    public static let any = IPv6Address(high: 0, low: 0)
    /// `::1`.
    public static let loopback = IPv6Address(high: 0, low: 1)

    /// Whether this is `::`.
    public var isUnspecified: Bool { high == 0 && low == 0 }
    /// Whether this is `::1`.
    public var isLoopback: Bool { high == 0 && low == 1 }
    /// Whether this is in `fe80::/10`.
    public var isLinkLocal: Bool { high >> 54 == 0xFE80 >> 6 }
    /// Whether this is in `ff00::/8`.
    public var isMulticast: Bool { high >> 56 == 0xFF }
    /// Whether this is in `fc00::/7` (RFC 4193).
    public var isUniqueLocal: Bool { high >> 57 == 0xFC >> 1 }

    /// The kernel's rule for the name of an interface (`dev_valid_name`); an index meets it too.
    static func isZone(_ zone: String) -> Bool {
        (1...15).contains(zone.utf8.count)
            && zone.utf8.allSatisfy {
                $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: ":")
            }
    }

    static let zoneReason = "a zone is an interface's name of 1 to 15 bytes, or its index"
}
