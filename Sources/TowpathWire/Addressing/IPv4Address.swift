/// An IPv4 address.
public struct IPv4Address: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The address as a number in the byte order of the host: `127.0.0.1` is `0x7F00_0001`.
    public let rawValue: UInt32

    /// The address with this number, in the byte order of the host.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The address `a.b.c.d`.
    public init(_ a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8) {
        rawValue = UInt32(a) << 24 | UInt32(b) << 16 | UInt32(c) << 8 | UInt32(d)
    }

    /// Parses dotted decimal: four numbers from 0 to 255.
    ///
    /// The older forms of `inet_aton` are refused: a leading zero means octal to some programs and
    /// nothing to others, and a check that reads an address differently from the one who connects
    /// to it is no check.
    public init(parsing text: some StringProtocol) throws(AddressError) {
        let parts = String(text).pieces(separatedBy: UInt8(ascii: "."))
        guard parts.count == 4 else {
            throw AddressError(text, "an IPv4 address has four parts, this has \(parts.count)")
        }
        var value: UInt32 = 0
        for part in parts {
            let name = "part \(AddressError.quoted(part)) of an IPv4 address"
            guard part.isDecimal else { throw AddressError(text, "\(name) is not a number") }
            guard part == "0" || part.utf8.first != UInt8(ascii: "0") else {
                throw AddressError(text, "\(name) has a leading zero, which can mean octal")
            }
            guard let byte = UInt8(part) else { throw AddressError(text, "\(name) is above 255") }
            value = value << 8 | UInt32(byte)
        }
        rawValue = value
    }

    /// The four bytes in network order.
    public var bytes: [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: rawValue >> $0) }
    }

    /// Dotted decimal.
    public var description: String { bytes.map(String.init).joined(separator: ".") }

    /// The order of the numbers.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// `0.0.0.0`: to a listener, every local IPv4 address.
    public static let any = IPv4Address(0, 0, 0, 0)
    /// `127.0.0.1`.
    public static let loopback = IPv4Address(127, 0, 0, 1)
    /// `255.255.255.255`: everyone on the local link.
    public static let broadcast = IPv4Address(255, 255, 255, 255)

    /// Whether this is `0.0.0.0`.
    public var isUnspecified: Bool { self == .any }
    /// Whether this is in `127.0.0.0/8`.
    public var isLoopback: Bool { rawValue >> 24 == 127 }
    /// Whether this is in `169.254.0.0/16` (RFC 3927).
    public var isLinkLocal: Bool { rawValue >> 16 == 0xA9FE }
    /// Whether this is in `224.0.0.0/4`.
    public var isMulticast: Bool { rawValue >> 28 == 0xE }
    /// Whether this is in `10.0.0.0/8`, `172.16.0.0/12` or `192.168.0.0/16` (RFC 1918).
    public var isPrivate: Bool {
        rawValue >> 24 == 10 || rawValue >> 20 == 0xAC1 || rawValue >> 16 == 0xC0A8
    }
}
