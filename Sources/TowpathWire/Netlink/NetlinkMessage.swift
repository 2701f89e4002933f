/// One netlink message: its header (netlink(7)) and what follows it.
package struct NetlinkMessage: Sendable {
    package struct Flags: OptionSet, Sendable {
        package let rawValue: UInt16
        package init(rawValue: UInt16) { self.rawValue = rawValue }

        package static let request = Flags(rawValue: 0x1)
        package static let multipart = Flags(rawValue: 0x2)
        package static let acknowledge = Flags(rawValue: 0x4)
        /// The table changed while it was listed: the list is not to be trusted.
        package static let dumpInterrupted = Flags(rawValue: 0x10)
        /// On what is asked for: the whole table.
        package static let dump = Flags(rawValue: 0x300)
        /// On a new entry: it took the place of another, of which nothing else tells.
        package static let replace = Flags(rawValue: 0x100)
        /// On an error: the request is not repeated behind it.
        package static let capped = Flags(rawValue: 0x100)
        /// On an error or an end: attributes follow.
        package static let hasAttributes = Flags(rawValue: 0x200)
    }

    package static let headerSize = 16

    package let type: UInt16
    package let flags: Flags
    package let sequence: UInt32
    package let port: UInt32
    package let payload: ArraySlice<UInt8>
}

/// Why bytes from a netlink socket make no sense. The rest of their datagram is not to be trusted.
package enum NetlinkError: Error, Equatable, Sendable {
    /// A header or body ends before it should.
    case truncated(needed: Int, found: Int)
    /// A message or attribute claims to be shorter than its own header.
    case lengthTooSmall(Int)
    /// A message or attribute claims more bytes than there are.
    case lengthTooLarge(Int, available: Int)
    /// The attribute is not of the size its type has.
    case attributeSize(type: UInt16, size: Int)
}

/// The messages of one datagram, in order.
package struct NetlinkMessages: Sendable {
    private var rest: ArraySlice<UInt8>

    package init(_ datagram: ArraySlice<UInt8>) { rest = datagram }

    /// The next message; nil at the end. After an error there is no next one.
    package mutating func next() throws(NetlinkError) -> NetlinkMessage? {
        guard !rest.isEmpty else { return nil }
        let datagram = rest
        rest = []
        guard datagram.count >= NetlinkMessage.headerSize else {
            throw .truncated(needed: NetlinkMessage.headerSize, found: datagram.count)
        }
        let length = Int(clamping: datagram.number(at: 0, as: UInt32.self))
        guard length >= NetlinkMessage.headerSize else { throw .lengthTooSmall(length) }
        guard length <= datagram.count else {
            throw .lengthTooLarge(length, available: datagram.count)
        }
        // The padding of the last message may be missing.
        rest = datagram.dropFirst(min(length.alignedToFour, datagram.count))
        let start = datagram.startIndex
        return NetlinkMessage(
            type: datagram.number(at: 4, as: UInt16.self),
            flags: NetlinkMessage.Flags(rawValue: datagram.number(at: 6, as: UInt16.self)),
            sequence: datagram.number(at: 8, as: UInt32.self),
            port: datagram.number(at: 12, as: UInt32.self),
            payload: datagram[(start + NetlinkMessage.headerSize)..<(start + length)])
    }
}

extension ArraySlice<UInt8> {
    /// A number in the byte order of the host, as netlink has them; the caller checked the bounds.
    func number<Number: FixedWidthInteger & UnsignedInteger>(
        at offset: Int, as type: Number.Type
    ) -> Number {
        var number: Number = 0
        for index in 0..<(Number.bitWidth / 8) {
            number |= Number(self[startIndex + offset + index]) << (8 * index)
        }
        return Number(littleEndian: number) == number ? number : number.byteSwapped
    }

    /// A number in network order.
    func networkNumber<Number: FixedWidthInteger & UnsignedInteger>(
        at offset: Int, as type: Number.Type
    ) -> Number {
        var number: Number = 0
        for index in 0..<(Number.bitWidth / 8) {
            number = number << 8 | Number(self[startIndex + offset + index])
        }
        return number
    }
}

extension Int {
    /// Messages and attributes begin at multiples of four.
    var alignedToFour: Int { (self + 3) & ~3 }
}
