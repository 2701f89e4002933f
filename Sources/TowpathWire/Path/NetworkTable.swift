/// What the kernel has told of interfaces and addresses: messages in, a table out.
///
/// Routes are not kept: IPv4 ones go without a word when an interface or an address does, so that they
/// are asked for anew after every change.
package struct NetworkTable: Equatable, Sendable {
    /// What a message changed.
    package enum Change: Equatable, Sendable {
        /// Nil before for a new one, nil after for one that is gone.
        case link(old: LinkMessage?, new: LinkMessage?)
        case address(old: AddressMessage?, new: AddressMessage?)
        /// The routes may be others, though the table is the same.
        case routes
    }

    package struct AddressKey: Hashable, Sendable {
        let index: UInt32
        let address: IPAddress
        let peer: IPAddress?
        let prefixLength: UInt8
    }

    package struct Link: Equatable, Sendable {
        package var message: LinkMessage
        /// Which of those that have had this index it is.
        package var generation: UInt32
    }

    package private(set) var links: [UInt32: Link] = [:]
    package private(set) var addresses: [AddressKey: AddressMessage] = [:]
    /// How many interfaces went; the next one with a number that was used is another interface.
    private var removedCount: UInt32 = 0

    package init() {}

    /// Whether both know the same, whatever the way there was.
    package func isSame(as other: NetworkTable) -> Bool {
        links.mapValues(\.message.semantic) == other.links.mapValues(\.message.semantic)
            && addresses == other.addresses
    }

    /// Nil if nothing is different from before.
    package mutating func apply(_ message: RouteNetlink) -> Change? {
        switch message {
        // A bridge tells of its ports in a family of its own; one that leaves is not gone.
        case .newLink(let link): return link.family == 0 ? insert(link) : nil
        case .removedLink(let link): return link.family == 0 ? remove(link) : nil
        case .newAddress(let address): return insert(address)
        case .removedAddress(let address): return remove(address)
        case .newRoute, .removedRoute, .rule, .nexthop: return .routes
        // Neighbours are not kept: who wants to know asks for one.
        case .newNeighbor, .removedNeighbor, .done, .acknowledgement, .other: return nil
        }
    }

    /// In how many interfaces and addresses the two differ.
    package func differences(from other: NetworkTable) -> Int {
        let (mine, theirs) = (
            links.mapValues(\.message.semantic), other.links.mapValues(\.message.semantic)
        )
        let links = Set(mine.keys).union(theirs.keys).count { mine[$0] != theirs[$0] }
        let keys = Set(addresses.keys).union(other.addresses.keys)
        return links + keys.count { addresses[$0] != other.addresses[$0] }
    }

    private mutating func insert(_ link: LinkMessage) -> Change? {
        let old = links[link.index]
        links[link.index] = Link(message: link, generation: old?.generation ?? removedCount)
        // Counters and what is said of the message itself are no change of the interface.
        guard old?.message.semantic != link.semantic else { return nil }
        return .link(old: old?.message, new: link)
    }

    private mutating func remove(_ link: LinkMessage) -> Change? {
        guard let old = links.removeValue(forKey: link.index) else { return nil }
        removedCount &+= 1
        addresses = addresses.filter { $0.key.index != link.index }
        return .link(old: old.message, new: nil)
    }

    private mutating func insert(_ address: AddressMessage) -> Change? {
        guard let key = key(address) else { return nil }
        let old = addresses.updateValue(address, forKey: key)
        return old == address ? nil : .address(old: old, new: address)
    }

    private mutating func remove(_ address: AddressMessage) -> Change? {
        guard let key = key(address), let old = addresses.removeValue(forKey: key) else {
            return nil
        }
        return .address(old: old, new: nil)
    }

    private func key(_ message: AddressMessage) -> AddressKey? {
        message.address.map {
            AddressKey(
                index: message.index, address: $0, peer: message.peer,
                prefixLength: message.prefixLength)
        }
    }

    // MARK: Questions

    package func link(_ index: UInt32) -> LinkMessage? { links[index]?.message }

    package func link(named name: String) -> LinkMessage? {
        links.values.first { $0.message.name == name }?.message
    }

    /// The addresses of an interface: those of IPv4 first, and ascending.
    package func addresses(of index: UInt32) -> [AddressMessage] {
        addresses.values.filter { $0.index == index }.sorted {
            switch ($0.address, $1.address) {
            case (.v4(let first)?, .v4(let second)?): first < second
            case (.v6(let first)?, .v6(let second)?): first < second
            case (.v4?, .v6?): true
            default: false
            }
        }
    }
}

extension LinkMessage {
    /// Without what may differ between two messages that tell the same.
    package var semantic: LinkMessage {
        var copy = self
        copy.change = 0
        copy.newIndex = nil
        // The other end, which is not there yet when a pair is announced; nobody tells of it later.
        if kind == "veth" { copy.lower = nil }
        return copy
    }

    /// Whether packets can leave through it. Both are needed: the operational state may lag behind the
    /// carrier by a second, and is unknown for tunnels (RFC 2863; operstates.rst of the kernel).
    package var isUsable: Bool {
        flags.contains(.up) && flags.contains(.lowerUp)
            && (operationalState == nil || operationalState == .up || operationalState == .unknown)
    }

    package var isDormant: Bool { flags.contains(.up) && operationalState == .dormant }
}

extension AddressMessage {
    /// Whether packets can leave from it (RFC 4862 §5.4, RFC 4429).
    package var isUsable: Bool {
        !flags.contains(.duplicate)
            && (!flags.contains(.tentative) || flags.contains(.optimistic))
    }

    /// Whether it means something beyond its link.
    package var isGlobal: Bool { scope <= Self.scopeSite }
}
