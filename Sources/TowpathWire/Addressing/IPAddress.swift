/// An IP address of either family.
public enum IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// An IPv4 address.
    case v4(IPv4Address)
    /// An IPv6 address.
    case v6(IPv6Address)

    /// Parses an address of either family; IPv6 without brackets.
    public init(parsing text: some StringProtocol) throws(AddressError) {
        if text.utf8.contains(UInt8(ascii: ":")) {
            self = .v6(try IPv6Address(parsing: text))
        } else {
            self = .v4(try IPv4Address(parsing: text))
        }
    }

    /// The family.
    public var family: AddressFamily {
        switch self {
        case .v4: .ipv4
        case .v6: .ipv6
        }
    }

    /// The IPv4 address in an IPv4-mapped IPv6 one, and any other as it is.
    ///
    /// A dual-stack socket shows an IPv4 peer as `::ffff:a.b.c.d`; addresses that are compared or
    /// shown must be normalized first, or one host has two names.
    public var normalized: IPAddress {
        if case .v6(let address) = self, let mapped = address.ipv4Mapped { return .v4(mapped) }
        return self
    }

    /// The canonical text; IPv6 without brackets.
    public var description: String {
        switch self {
        case .v4(let address): address.description
        case .v6(let address): address.description
        }
    }
}
