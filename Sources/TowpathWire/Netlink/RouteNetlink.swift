/// What a message of NETLINK_ROUTE says, rtnetlink(7).
package enum RouteNetlink: Equatable, Sendable {
    case newLink(LinkMessage)
    case removedLink(LinkMessage)
    case newAddress(AddressMessage)
    case removedAddress(AddressMessage)
    /// `replaces`: another one went, of which no message tells.
    case newRoute(RouteMessage, replaces: Bool)
    case removedRoute(RouteMessage)
    case newNeighbor(NeighborMessage)
    case removedNeighbor(NeighborMessage)
    /// A routing rule of one family came or went; nil for another family.
    case rule(RuleMessage)
    /// A nexthop object came or went, and with it perhaps routes.
    case nexthop
    /// The end of a list; an errno, 0 for none.
    case done(errno: Int32)
    /// The answer to a request: an errno, 0 for success, and the kernel's words if it has any.
    case acknowledgement(errno: Int32, message: String?)
    /// Something else.
    case other(type: UInt16)

    package init(_ message: NetlinkMessage) throws(NetlinkError) {
        let payload = message.payload
        switch message.type {
        case 16:
            let link = try LinkMessage(parsing: payload)
            self = link.isWirelessEvent ? .other(type: message.type) : .newLink(link)
        case 17: self = .removedLink(try LinkMessage(parsing: payload))
        case 20: self = .newAddress(try AddressMessage(parsing: payload))
        case 21: self = .removedAddress(try AddressMessage(parsing: payload))
        case 24:
            self = .newRoute(
                try RouteMessage(parsing: payload), replaces: message.flags.contains(.replace))
        case 25: self = .removedRoute(try RouteMessage(parsing: payload))
        case 28: self = .newNeighbor(try NeighborMessage(parsing: payload))
        case 29: self = .removedNeighbor(try NeighborMessage(parsing: payload))
        case 32, 33: self = .rule(try RuleMessage(parsing: payload))
        case 104, 105: self = .nexthop
        case 2: self = try Self.acknowledgement(message)
        // The number at the end of a list is optional.
        case 3:
            let isThere = payload.count >= 4
            self = .done(errno: isThere ? Self.errno(payload) : 0)
        default: self = .other(type: message.type)
        }
    }

    private static func errno(_ payload: ArraySlice<UInt8>) -> Int32 {
        let number = Int32(bitPattern: payload.number(at: 0, as: UInt32.self))
        return number == .min ? .max : abs(number)
    }

    /// struct nlmsgerr: an errno, then the header of the request, all of the request unless it is
    /// capped, and attributes, of which NLMSGERR_ATTR_MSG is 1.
    private static func acknowledgement(
        _ message: NetlinkMessage
    ) throws(NetlinkError) -> RouteNetlink {
        let payload = message.payload
        let head = 4 + NetlinkMessage.headerSize
        guard payload.count >= head else { throw .truncated(needed: head, found: payload.count) }
        var text: String?
        if message.flags.contains(.hasAttributes) {
            let length = Int(clamping: payload.number(at: 4, as: UInt32.self))
            let request =
                message.flags.contains(.capped) ? NetlinkMessage.headerSize : length.alignedToFour
            guard request >= NetlinkMessage.headerSize else { throw .lengthTooSmall(request) }
            guard request <= payload.count - 4 else {
                throw .lengthTooLarge(request, available: payload.count - 4)
            }
            try NetlinkAttribute.forEach(in: payload.dropFirst(4 + request)) { attribute in
                if attribute.type == 1 { text = attribute.text() }
            }
        }
        return .acknowledgement(errno: errno(payload), message: text)
    }
}

/// A routing rule, ip-rule(8): struct fib_rule_hdr. Which tables are looked at is all that is asked.
package struct RuleMessage: Equatable, Sendable {
    package static let bodySize = 12
    /// FR_ACT_TO_TBL of linux/fib_rules.h.
    private static let toTable: UInt8 = 1

    package var family: AddressFamily?
    /// Nil for a rule that refuses or jumps, or that takes the table of a device (VRF).
    package var table: UInt32?

    package init(parsing payload: ArraySlice<UInt8>) throws(NetlinkError) {
        guard payload.count >= Self.bodySize else {
            throw .truncated(needed: Self.bodySize, found: payload.count)
        }
        let start = payload.startIndex
        family = AddressFamily(netlink: payload[start])
        var table = UInt32(payload[start + 4])
        try NetlinkAttribute.forEach(in: payload.dropFirst(Self.bodySize)) {
            (attribute) throws(NetlinkError) in
            // FRA_TABLE.
            if attribute.type == 15 { table = try attribute.uint32() }
        }
        self.table = payload[start + 7] == Self.toTable && table != 0 ? table : nil
    }
}
