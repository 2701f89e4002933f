/// An address of an interface: struct ifaddrmsg and its attributes, rtnetlink(7).
package struct AddressMessage: Equatable, Sendable {
    package struct Flags: OptionSet, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static let optimistic = Flags(rawValue: 0x04)
        /// Another host has it, too (RFC 4862 §5.4).
        package static let duplicate = Flags(rawValue: 0x08)
        package static let deprecated = Flags(rawValue: 0x20)
        /// Not known to be unique yet (RFC 4862 §5.4).
        package static let tentative = Flags(rawValue: 0x40)
    }

    package static let bodySize = 8
    /// Scopes of rtnetlink(7).
    package static let scopeUniverse: UInt8 = 0
    package static let scopeSite: UInt8 = 200

    package var prefixLength: UInt8 = 0
    package var scope: UInt8 = 0
    package var index: UInt32 = 0
    package var flags: Flags = []
    /// The interface's own; on a point-to-point link the other side's stands in IFA_ADDRESS.
    package var address: IPAddress?
    /// The other side's, on a point-to-point link. There may be several for one address.
    package var peer: IPAddress?

    package init() {}

    package init(parsing payload: ArraySlice<UInt8>) throws(NetlinkError) {
        guard payload.count >= Self.bodySize else {
            throw .truncated(needed: Self.bodySize, found: payload.count)
        }
        let start = payload.startIndex
        prefixLength = payload[start + 1]
        scope = payload[start + 3]
        index = payload.number(at: 4, as: UInt32.self)
        var wideFlags: UInt32?
        var (own, peer): (IPAddress?, IPAddress?)
        try NetlinkAttribute.forEach(in: payload.dropFirst(Self.bodySize)) {
            (attribute) throws(NetlinkError) in
            switch attribute.type {
            case 1: peer = try attribute.address()
            case 2: own = try attribute.address()
            case 8: wideFlags = try attribute.uint32()
            default: break
            }
        }
        address = own ?? peer
        self.peer = own == peer || own == nil ? nil : peer
        // The body has room for eight of them.
        flags = Flags(rawValue: wideFlags ?? UInt32(payload[start + 2]))
    }
}
