/// A network interface as the kernel tells of it: struct ifinfomsg and its attributes, rtnetlink(7).
package struct LinkMessage: Equatable, Sendable {
    package struct Flags: OptionSet, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static let up = Flags(rawValue: 0x1)
        package static let loopback = Flags(rawValue: 0x8)
        package static let pointToPoint = Flags(rawValue: 0x10)
        package static let running = Flags(rawValue: 0x40)
        package static let lowerUp = Flags(rawValue: 0x10000)
        package static let dormant = Flags(rawValue: 0x20000)
    }

    /// RFC 2863's ifOperStatus as Linux numbers it.
    package enum OperationalState: UInt8, Sendable {
        case unknown, notPresent, down, lowerLayerDown, testing, dormant, up
    }

    package static let bodySize = 16

    /// 0 but for what a bridge tells of its ports (AF_BRIDGE).
    package var family: UInt8 = 0
    /// ARPHRD_ETHER and others.
    package var hardwareType: UInt16 = 0
    package var index: UInt32 = 0
    package var flags: Flags = []
    package var change: UInt32 = 0
    package var name = ""
    package var mtu: UInt32 = 0
    package var operationalState: OperationalState?
    package var hasCarrier: Bool?
    package var carrierUpCount: UInt32?
    package var carrierDownCount: UInt32?
    /// What it is made of, such as `veth` or `tun`.
    package var kind: String?
    /// The interface below, of a VLAN or macvlan.
    package var lower: UInt32?
    /// Whether that one is in another namespace, so that its index means nothing here.
    package var lowerIsElsewhere = false
    /// The bridge or bond that it is a port of.
    package var master: UInt32?
    package var parentBus: String?
    /// It moved to another namespace, where it has this index.
    package var newIndex: UInt32?
    /// It tells of a scan or a roaming, and of nothing else but its name (IFLA_WIRELESS).
    package var isWirelessEvent = false

    package init() {}

    package init(parsing payload: ArraySlice<UInt8>) throws(NetlinkError) {
        guard payload.count >= Self.bodySize else {
            throw .truncated(needed: Self.bodySize, found: payload.count)
        }
        family = payload[payload.startIndex]
        hardwareType = payload.number(at: 2, as: UInt16.self)
        index = payload.number(at: 4, as: UInt32.self)
        flags = Flags(rawValue: payload.number(at: 8, as: UInt32.self))
        change = payload.number(at: 12, as: UInt32.self)
        var link = self
        try NetlinkAttribute.forEach(in: payload.dropFirst(Self.bodySize)) {
            (attribute) throws(NetlinkError) in try link.read(attribute)
        }
        self = link
    }

    private mutating func read(_ attribute: NetlinkAttribute) throws(NetlinkError) {
        switch attribute.type {
        case 3: name = attribute.text()
        case 4: mtu = try attribute.uint32()
        case 5: lower = try attribute.uint32()
        case 10: master = try attribute.uint32()
        case 11: isWirelessEvent = true
        case 16: operationalState = OperationalState(rawValue: try attribute.uint8())
        case 18: try readKind(attribute.value)
        case 33: hasCarrier = try attribute.uint8() != 0
        case 37: lowerIsElsewhere = true
        case 47: carrierUpCount = try attribute.uint32()
        case 48: carrierDownCount = try attribute.uint32()
        case 49: newIndex = try attribute.uint32()
        case 57: parentBus = attribute.text()
        default: break
        }
    }

    /// IFLA_LINKINFO, of which IFLA_INFO_KIND is 1.
    private mutating func readKind(_ bytes: ArraySlice<UInt8>) throws(NetlinkError) {
        var kind: String?
        try NetlinkAttribute.forEach(in: bytes) { attribute in
            if attribute.type == 1 { kind = attribute.text() }
        }
        self.kind = kind
    }
}
