extension PathEvaluator {
    func ordered(_ indices: [UInt32]) -> [UInt32] {
        var seen: Set<UInt32> = []
        return indices.filter { seen.insert($0).inserted }
    }

    /// The interfaces of default routes, best first; the order of the list decides between equals.
    var preferred: [UInt32] {
        // IPv6 gives what is unreachable the loopback as its way.
        defaults.filter { $0.kind == .unicast }.enumerated()
            .sorted { ($0.element.priority, $0.offset) < ($1.element.priority, $1.offset) }
            .flatMap { $0.element.hops.compactMap(\.interface) }
    }

    func interfaces(first: [UInt32], isGeneral: Bool) -> [Path.Interface] {
        ordered(first + (isGeneral ? preferred : [])).compactMap { index in
            guard let link = table.link(index), link.isUsable else { return nil }
            let type = type(of: index)
            guard requirement.allows(link.name, type) else { return nil }
            let addresses = table.addresses(of: index).filter(\.isUsable).compactMap(\.address)
            return Path.Interface(
                name: link.name, index: index, type: type, mtu: Int(link.mtu), addresses: addresses)
        }
    }

    /// What kind of network it belongs to; a bridge or VLAN is of the kind of what it is made of.
    package func type(of index: UInt32) -> InterfaceType {
        // Each step leads to another interface; a circle cannot be longer than there are some.
        type(of: index, steps: min(table.links.count, 8))
    }

    private func type(of index: UInt32, steps: Int) -> InterfaceType {
        guard let link = table.link(index) else { return .other }
        if let known = link.type ?? types[index] { return known }
        guard steps > 0 else { return .other }
        switch link.kind {
        case "vlan", "macvlan", "macvtap", "ipvlan":
            guard let lower = link.lower, !link.lowerIsElsewhere else { return .wiredEthernet }
            return type(of: lower, steps: steps - 1)
        case "bridge", "bond", "team":
            let ports = table.links.values.filter { $0.message.master == index }
            let kinds = Set(ports.map { type(of: $0.message.index, steps: steps - 1) })
            let order: [InterfaceType] = [.wiredEthernet, .wifi, .cellular]
            return order.first(where: kinds.contains) ?? .other
        case nil, "veth": return link.hardwareType == LinkMessage.ethernet ? .wiredEthernet : .other
        default: return .other
        }
    }
}

extension LinkMessage {
    /// ARPHRD_ETHER, ARPHRD_RAWIP and the three of IEEE 802.11.
    static let ethernet: UInt16 = 1
    private static let rawIP: UInt16 = 519
    private static let wireless: ClosedRange<UInt16> = 801...803

    /// What the link itself tells of its type.
    fileprivate var type: InterfaceType? {
        if flags.contains(.loopback) { return .loopback }
        if Self.wireless.contains(hardwareType) { return .wifi }
        if parentBus == "wwan" || kind == "wwan" || hardwareType == Self.rawIP { return .cellular }
        return nil
    }

    var isTunnel: Bool { kind == "tun" || kind == "wireguard" }
}
