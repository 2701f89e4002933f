/// Requests to NETLINK_ROUTE, as bytes for one datagram.
package enum NetlinkRequest {
    /// Leaves the counters out of what is told of a link (RTEXT_FILTER_SKIP_STATS).
    private static let skipStatistics: UInt32 = 8

    /// All interfaces.
    package static func links(sequence: UInt32) -> [UInt8] {
        var body = [UInt8](repeating: 0, count: LinkMessage.bodySize)
        append(29, skipStatistics, to: &body)
        return message(type: 18, .dump, sequence, body)
    }

    /// One interface.
    package static func link(index: UInt32, sequence: UInt32) -> [UInt8] {
        var body = [UInt8](repeating: 0, count: 4)
        append(index, to: &body)
        body += [UInt8](repeating: 0, count: LinkMessage.bodySize - body.count)
        append(29, skipStatistics, to: &body)
        return message(type: 18, [], sequence, body)
    }

    /// All addresses of both families.
    package static func addresses(sequence: UInt32) -> [UInt8] {
        message(
            type: 22, .dump, sequence, [UInt8](repeating: 0, count: AddressMessage.bodySize))
    }

    /// All routing rules of a family.
    package static func rules(_ family: AddressFamily, sequence: UInt32) -> [UInt8] {
        var body = [UInt8](repeating: 0, count: RuleMessage.bodySize)
        body[0] = family.netlink
        return message(type: 34, .dump, sequence, body)
    }

    /// The routes of one table and family; the kernel filters where it checks strictly, older ones
    /// give them all.
    package static func routes(
        _ family: AddressFamily, table: UInt32, sequence: UInt32
    ) -> [UInt8] {
        var body = routeBody(family)
        body[4] = UInt8(truncatingIfNeeded: table > 255 ? 0 : table)
        append(15, table, to: &body)
        return message(type: 26, .dump, sequence, body)
    }

    /// Which way a packet would take.
    package static func route(_ query: RouteQuery, sequence: UInt32) -> [UInt8] {
        let family = query.destination.family
        var body = routeBody(family)
        body[1] = family == .ipv4 ? 32 : 128
        var flags: RouteMessage.Flags = query.matchesTable ? .fibMatch : []
        // IPv6 refuses this flag, and tells the table without it.
        if family == .ipv4 { flags.insert(.lookupTable) }
        body.removeLast(4)
        append(flags.rawValue, to: &body)
        append(1, bytes(query.destination), to: &body)
        if let source = query.source {
            body[2] = family == .ipv4 ? 32 : 128
            append(2, bytes(source), to: &body)
        }
        if let interface = query.interface { append(4, interface, to: &body) }
        if let mark = query.mark { append(16, mark, to: &body) }
        if let user = query.user { append(25, user, to: &body) }
        return message(type: 26, [], sequence, body)
    }

    /// What is known of one neighbour; an error if it is nothing.
    package static func neighbor(_ query: NeighborQuery, sequence: UInt32) -> [UInt8] {
        var body = [query.address.family.netlink, 0, 0, 0]
        append(query.interface, to: &body)
        body += [UInt8](repeating: 0, count: NeighborMessage.bodySize - body.count)
        append(1, bytes(query.address), to: &body)
        return message(type: 30, [], sequence, body)
    }

    private static func routeBody(_ family: AddressFamily) -> [UInt8] {
        var body = [UInt8](repeating: 0, count: RouteMessage.bodySize)
        body[0] = family.netlink
        return body
    }

    private static func message(
        type: UInt16, _ flags: NetlinkMessage.Flags, _ sequence: UInt32, _ body: [UInt8]
    ) -> [UInt8] {
        let length = NetlinkMessage.headerSize + body.count
        var message: [UInt8] = []
        message.reserveCapacity(length)
        append(UInt32(length), to: &message)
        append(type, to: &message)
        append(flags.union(.request).rawValue, to: &message)
        append(sequence, to: &message)
        append(UInt32(0), to: &message)
        message += body
        return message
    }

    /// An attribute; its value's length is a multiple of four.
    private static func append(_ type: UInt16, _ value: [UInt8], to body: inout [UInt8]) {
        append(UInt16(NetlinkAttribute.headerSize + value.count), to: &body)
        append(type, to: &body)
        body += value
    }

    private static func append(_ type: UInt16, _ value: UInt32, to body: inout [UInt8]) {
        append(UInt16(NetlinkAttribute.headerSize + 4), to: &body)
        append(type, to: &body)
        append(value, to: &body)
    }

    /// In the byte order of the host.
    private static func append<Number: FixedWidthInteger & UnsignedInteger>(
        _ number: Number, to bytes: inout [UInt8]
    ) {
        let ordered = number.littleEndian
        for shift in stride(from: 0, to: Number.bitWidth, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: ordered >> shift))
        }
    }

    private static func bytes(_ address: IPAddress) -> [UInt8] {
        switch address {
        case .v4(let address): address.bytes
        case .v6(let address): address.bytes
        }
    }
}

/// A question to the kernel: by which way does a packet go there?
package struct RouteQuery: Hashable, Sendable {
    package var destination: IPAddress
    package var source: IPAddress?
    package var interface: UInt32?
    package var mark: UInt32?
    package var user: UInt32?
    /// The entry of the table with all its hops, rather than the one way this packet takes.
    package var matchesTable: Bool

    package init(
        to destination: IPAddress, source: IPAddress? = nil, interface: UInt32? = nil,
        mark: UInt32? = nil, user: UInt32? = nil, matchesTable: Bool = false
    ) {
        self.destination = destination
        self.source = source
        self.interface = interface
        self.mark = mark
        self.user = user
        self.matchesTable = matchesTable
    }
}
