/// A netlink attribute: a type and the bytes of its value (netlink(7), struct nlattr).
package struct NetlinkAttribute: Sendable {
    package static let headerSize = 4
    /// Two bits of the type are flags: nested, and network byte order.
    private static let typeMask: UInt16 = 0x3FFF

    package let type: UInt16
    package let value: ArraySlice<UInt8>

    /// Calls `body` with each attribute. A length that cannot be ends it with an error; bytes that are
    /// too few for a header are padding.
    package static func forEach(
        in bytes: ArraySlice<UInt8>,
        _ body: (NetlinkAttribute) throws(NetlinkError) -> Void
    ) throws(NetlinkError) {
        var rest = bytes
        while rest.count >= headerSize {
            let length = Int(rest.number(at: 0, as: UInt16.self))
            guard length >= headerSize else { throw .lengthTooSmall(length) }
            guard length <= rest.count else {
                throw .lengthTooLarge(length, available: rest.count)
            }
            let start = rest.startIndex
            try body(
                NetlinkAttribute(
                    type: rest.number(at: 2, as: UInt16.self) & typeMask,
                    value: rest[(start + headerSize)..<(start + length)]))
            rest = rest.dropFirst(min(length.alignedToFour, rest.count))
        }
    }

    // MARK: Values. Longer ones than a type had when this was written are taken by their beginning.

    package func uint8() throws(NetlinkError) -> UInt8 { try number(UInt8.self) }
    package func uint16() throws(NetlinkError) -> UInt16 { try number(UInt16.self) }
    package func uint32() throws(NetlinkError) -> UInt32 { try number(UInt32.self) }

    private func number<Number: FixedWidthInteger & UnsignedInteger>(
        _ type: Number.Type
    ) throws(NetlinkError) -> Number {
        guard value.count >= Number.bitWidth / 8 else { throw wrongSize }
        return value.number(at: 0, as: type)
    }

    /// A text, up to its NUL byte or the end.
    package func text() -> String {
        String(decoding: value.prefix { $0 != 0 }, as: UTF8.self)
    }

    /// An address of 4 or 16 bytes, without a zone.
    package func address() throws(NetlinkError) -> IPAddress {
        switch value.count {
        case 4: return .v4(IPv4Address(rawValue: value.networkNumber(at: 0, as: UInt32.self)))
        case 16:
            return .v6(
                IPv6Address(
                    high: value.networkNumber(at: 0, as: UInt64.self),
                    low: value.networkNumber(at: 8, as: UInt64.self)))
        default: throw wrongSize
        }
    }

    package var wrongSize: NetlinkError { .attributeSize(type: type, size: value.count) }
}
