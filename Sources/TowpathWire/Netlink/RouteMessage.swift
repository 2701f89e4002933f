/// A route: struct rtmsg and its attributes, rtnetlink(7).
package struct RouteMessage: Equatable, Sendable {
    package enum Kind: Equatable, Sendable {
        case unicast, local, blackhole, unreachable, prohibit, `throw`
        case other(UInt8)

        init(_ number: UInt8) {
            self =
                switch number {
                case 1: .unicast
                case 2: .local
                case 6: .blackhole
                case 7: .unreachable
                case 8: .prohibit
                case 9: .throw
                default: .other(number)
                }
        }
    }

    package struct Flags: OptionSet, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        /// The interface is down.
        package static let dead = Flags(rawValue: 0x1)
        /// The interface has no carrier.
        package static let linkDown = Flags(rawValue: 0x10)
        /// Asks for the table that was really used.
        package static let lookupTable = Flags(rawValue: 0x1000)
        /// Asks for the entry of the table that matches, not for the way a packet takes.
        package static let fibMatch = Flags(rawValue: 0x2000)
    }

    /// One way of a route that has several, or the only one.
    package struct Hop: Equatable, Sendable {
        package var flags: Flags = []
        package var interface: UInt32?
        package var gateway: IPAddress?

        package init() {}
    }

    package static let bodySize = 12
    package static let hopSize = 8
    package static let tableMain: UInt32 = 254

    package var family: AddressFamily?
    package var destinationLength: UInt8 = 0
    package var kind = Kind.unicast
    package var flags: Flags = []
    package var table: UInt32 = 0
    package var destination: IPAddress?
    package var preferredSource: IPAddress?
    package var priority: UInt32 = 0
    /// In seconds; nil for one that stays.
    package var expires: UInt32?
    package var hops: [Hop] = []

    package init() {}

    package init(parsing payload: ArraySlice<UInt8>) throws(NetlinkError) {
        guard payload.count >= Self.bodySize else {
            throw .truncated(needed: Self.bodySize, found: payload.count)
        }
        let start = payload.startIndex
        family = AddressFamily(netlink: payload[start])
        destinationLength = payload[start + 1]
        table = UInt32(payload[start + 4])
        kind = Kind(payload[start + 7])
        flags = Flags(rawValue: payload.number(at: 8, as: UInt32.self))
        var route = self
        var only = Hop()
        only.flags = flags
        try NetlinkAttribute.forEach(in: payload.dropFirst(Self.bodySize)) {
            (attribute) throws(NetlinkError) in try route.read(attribute, &only)
        }
        if route.hops.isEmpty, only.interface != nil || only.gateway != nil { route.hops = [only] }
        self = route
    }

    private mutating func read(
        _ attribute: NetlinkAttribute, _ only: inout Hop
    ) throws(NetlinkError) {
        switch attribute.type {
        case 1: destination = try attribute.address()
        case 4: only.interface = try attribute.uint32()
        case 5: only.gateway = try attribute.address()
        case 6: priority = try attribute.uint32()
        case 7: preferredSource = try attribute.address()
        case 9: hops = try Self.hops(attribute.value)
        case 12: try readExpiry(attribute)
        case 15: table = try attribute.uint32()
        case 18: only.gateway = try Self.via(attribute)
        default: break
        }
    }

    /// struct rta_cacheinfo: rta_expires is the third number, in hundredths of a second.
    private mutating func readExpiry(_ attribute: NetlinkAttribute) throws(NetlinkError) {
        guard attribute.value.count >= 12 else { throw attribute.wrongSize }
        let hundredths = Int32(bitPattern: attribute.value.number(at: 8, as: UInt32.self))
        expires = hundredths == 0 ? nil : UInt32(clamping: hundredths / 100)
    }

    /// struct rtvia: a family and an address of it, for IPv4 by way of an IPv6 router (RFC 5549).
    private static func via(_ attribute: NetlinkAttribute) throws(NetlinkError) -> IPAddress {
        guard attribute.value.count > 2 else { throw attribute.wrongSize }
        return try NetlinkAttribute(type: attribute.type, value: attribute.value.dropFirst(2))
            .address()
    }

    /// struct rtnexthop, one behind the other, each with attributes of its own.
    private static func hops(_ bytes: ArraySlice<UInt8>) throws(NetlinkError) -> [Hop] {
        var hops: [Hop] = []
        var rest = bytes
        while rest.count >= hopSize {
            let length = Int(rest.number(at: 0, as: UInt16.self))
            guard length >= hopSize else { throw .lengthTooSmall(length) }
            guard length <= rest.count else {
                throw .lengthTooLarge(length, available: rest.count)
            }
            var hop = Hop()
            let start = rest.startIndex
            hop.flags = Flags(rawValue: UInt32(rest[start + 2]))
            hop.interface = rest.number(at: 4, as: UInt32.self)
            try NetlinkAttribute.forEach(in: rest[(start + hopSize)..<(start + length)]) {
                (attribute) throws(NetlinkError) in
                switch attribute.type {
                case 5: hop.gateway = try attribute.address()
                case 18: hop.gateway = try via(attribute)
                default: break
                }
            }
            hops.append(hop)
            rest = rest.dropFirst(min(length.alignedToFour, rest.count))
        }
        return hops
    }
}

extension AddressFamily {
    /// AF_INET and AF_INET6 of Linux.
    package init?(netlink number: UInt8) {
        switch number {
        case 2: self = .ipv4
        case 10: self = .ipv6
        default: return nil
        }
    }

    package var netlink: UInt8 { self == .ipv4 ? 2 : 10 }
}
