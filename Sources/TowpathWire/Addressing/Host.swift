/// A host: a name to be resolved, or an address.
public enum Host: Hashable, Sendable, CustomStringConvertible {
    /// A name, as it was given.
    case name(String)
    /// An IPv4 address.
    case ipv4(IPv4Address)
    /// An IPv6 address.
    case ipv6(IPv6Address)

    /// An address of either family.
    public init(_ address: IPAddress) {
        switch address {
        case .v4(let address): self = .ipv4(address)
        case .v6(let address): self = .ipv6(address)
        }
    }

    /// Parses an address (IPv6 without brackets), or else the name of a host.
    ///
    /// A name has letters, digits, `-` and `_` in labels of 1 to 63 bytes, 253 bytes in all, and
    /// may end in a dot. A name of which every label is a number (`256.1.1.1`, `127.1`, `0x7f.1`)
    /// is refused: resolvers read some of these as addresses.
    public init(parsing text: some StringProtocol) throws(AddressError) {
        let text = String(text)
        let labels = text.utf8.split(separator: UInt8(ascii: "."))
        if text.utf8.contains(UInt8(ascii: ":")) {
            self = .ipv6(try IPv6Address(parsing: text))
        } else if !labels.isEmpty, labels.allSatisfy(Self.isNumber) {
            self = .ipv4(try IPv4Address(parsing: text))
        } else {
            self = .name(try Self.validName(text))
        }
    }

    /// The address, unless this is a name.
    public var address: IPAddress? {
        switch self {
        case .name: nil
        case .ipv4(let address): .v4(address)
        case .ipv6(let address): .v6(address)
        }
    }

    /// With an IPv4-mapped IPv6 address replaced by the IPv4 address in it.
    public var normalized: Host { address.map { Host($0.normalized) } ?? self }

    /// The name, or the canonical text of the address; IPv6 without brackets.
    public var description: String {
        switch self {
        case .name(let name): name
        case .ipv4(let address): address.description
        case .ipv6(let address): address.description
        }
    }

    /// What `inet_aton`, which `getaddrinfo` asks first, may take for a part of an address.
    private static func isNumber(_ label: Substring.UTF8View) -> Bool {
        let isHex = label.starts(with: "0x".utf8) || label.starts(with: "0X".utf8)
        return isHex
            ? label.dropFirst(2).allSatisfy(\.isHexDigit) : label.allSatisfy(\.isDecimalDigit)
    }

    private static func validName(_ name: String) throws(AddressError) -> String {
        guard name.utf8.allSatisfy({ $0 < 0x80 }) else {
            throw AddressError(name, "a host name is ASCII: pass the punycode (xn--) form")
        }
        guard name.utf8.allSatisfy({ $0.isLetter || $0.isDecimalDigit || "-_.".utf8.contains($0) })
        else {
            throw AddressError(name, "a host name has only letters, digits, '-', '_' and '.'")
        }
        var labels = name.pieces(separatedBy: UInt8(ascii: "."))
        if labels.count > 1, labels.last?.isEmpty ?? false { labels.removeLast() }
        guard labels.allSatisfy({ (1...63).contains($0.utf8.count) }) else {
            throw AddressError(name, "each label of a host name has 1 to 63 bytes")
        }
        guard labels.reduce(labels.count - 1, { $0 + $1.utf8.count }) <= 253 else {
            throw AddressError(name, "a host name has at most 253 bytes")
        }
        return name
    }
}
