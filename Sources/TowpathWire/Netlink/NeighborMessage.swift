/// What the kernel knows of another host on the link: struct ndmsg and its attributes, rtnetlink(7).
package struct NeighborMessage: Equatable, Sendable {
    /// RFC 4861 §7.3.2's states as Linux has them, for ARP as well; none before anybody asked.
    package struct State: OptionSet, Hashable, Sendable {
        package let rawValue: UInt16
        package init(rawValue: UInt16) { self.rawValue = rawValue }

        /// It is being asked for the first time, or again after it failed.
        package static let incomplete = State(rawValue: 0x01)
        package static let reachable = State(rawValue: 0x02)
        package static let stale = State(rawValue: 0x04)
        package static let delay = State(rawValue: 0x08)
        package static let probe = State(rawValue: 0x10)
        /// It did not answer.
        package static let failed = State(rawValue: 0x20)
        /// It needs not be asked, on links without such addresses.
        package static let noARP = State(rawValue: 0x40)
        /// An administrator said where it is.
        package static let permanent = State(rawValue: 0x80)

        private static let usable: State = [.reachable, .stale, .delay, .probe, .noARP, .permanent]

        /// Whether packets can be sent to it; nil while nobody knows.
        package var isReachable: Bool? {
            if contains(.failed) { return false }
            return isDisjoint(with: Self.usable) ? nil : true
        }
    }

    package static let bodySize = 12

    /// Nil for what a bridge or tunnel tells of hardware addresses (AF_BRIDGE), which may name the IP
    /// address of another tunnel's end.
    package var family: AddressFamily?
    package var index: UInt32 = 0
    package var state: State = []
    package var address: IPAddress?

    package init() {}

    package init(parsing payload: ArraySlice<UInt8>) throws(NetlinkError) {
        guard payload.count >= Self.bodySize else {
            throw .truncated(needed: Self.bodySize, found: payload.count)
        }
        family = AddressFamily(netlink: payload[payload.startIndex])
        index = payload.number(at: 4, as: UInt32.self)
        state = State(rawValue: payload.number(at: 8, as: UInt16.self))
        var address: IPAddress?
        try NetlinkAttribute.forEach(in: payload.dropFirst(Self.bodySize)) {
            (attribute) throws(NetlinkError) in
            // NDA_DST.
            if attribute.type == 1 { address = try attribute.address() }
        }
        self.address = address
    }

    /// Which neighbour it tells of; nil if it is no host of IPv4 or IPv6.
    package var subject: NeighborQuery? {
        guard let address, address.family == family else { return nil }
        return NeighborQuery(address, on: index)
    }
}

/// A question to the kernel: what does it know of this host on the link?
package struct NeighborQuery: Hashable, Sendable {
    package let address: IPAddress
    package let interface: UInt32

    /// The address has no zone: the interface says it.
    package init(_ address: IPAddress, on interface: UInt32) {
        self.address = address
        self.interface = interface
    }
}
