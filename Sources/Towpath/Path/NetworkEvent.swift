internal import TowpathWire

/// One change that a ``PathMonitor`` heard of, before it is clear whether the path is another.
public struct NetworkEvent: Sendable, CustomStringConvertible {
    /// What changed.
    public enum Kind: String, Sendable, CaseIterable {
        /// An interface.
        case link
        /// An address of an interface.
        case address
        /// A route, or a nexthop object.
        case route
        /// A routing rule.
        case rule
        /// The name servers.
        case dns
        /// The file of the monitored namespace went or became another: the namespace lives as long as
        /// somebody uses it, and stays monitored.
        case namespace
        /// Events were lost, or not taken in time; what is published since then is right again.
        case gap
    }

    /// What changed.
    public let kind: Kind
    /// The interface's name; nil where there is none.
    public let interface: String?
    /// The interface's number; 0 where there is none.
    public let index: UInt32
    /// Whether it is a port of another interface, such as a bridge, which has the addresses.
    public let isPort: Bool
    private let content: Content

    /// What was heard. Told in words only to who asks: in a storm nobody may.
    private indirect enum Content {
        case words(String)
        case link(old: LinkMessage?, new: LinkMessage?)
        case address(old: AddressMessage?, new: AddressMessage?)
        case newRoute(RouteMessage, replaces: Bool)
        case removedRoute(RouteMessage)
    }

    /// How it was, and how it is: `state`, `carrier`, `mtu`, `name`, `kind` of a link; `address`,
    /// `flags` of an address; `destination`, `gateway`, `metric`, `table` of a route.
    public var old: [String: String] {
        switch content {
        case .link(let old, _): old?.details ?? [:]
        case .address(let old, _): old?.details ?? [:]
        case .removedRoute(let route): route.details
        case .newRoute, .words: [:]
        }
    }

    /// See ``old``.
    public var new: [String: String] {
        switch content {
        case .link(_, let new): new?.details ?? [:]
        case .address(_, let new): new?.details ?? [:]
        case .newRoute(let route, _): route.details
        case .removedRoute, .words: [:]
        }
    }

    /// What the kernel said, such as `NEWLINK w0 carrier 1->0`.
    public var cause: String {
        switch content {
        case .words(let words): words
        case .link(_, let new): cause(new == nil ? "DELLINK" : "NEWLINK")
        case .address(_, let new): cause(new == nil ? "DELADDR" : "NEWADDR")
        case .newRoute(_, let replaces): cause(replaces ? "REPLACEROUTE" : "NEWROUTE")
        case .removedRoute: cause("DELROUTE")
        }
    }

    private func cause(_ name: String) -> String {
        let (old, new) = (old, new)
        let changes = Set(old.keys).union(new.keys).sorted().compactMap { key -> String? in
            guard old[key] != new[key] else { return nil }
            switch (old[key], new[key]) {
            case (let before?, let after?): return "\(key) \(before)->\(after)"
            case (nil, let after?): return "\(key) \(after)"
            case (let before?, nil): return "\(key) \(before)"
            case (nil, nil): return nil
            }
        }
        let words = [name, interface].compactMap(\.self) + changes
        return words.joined(separator: " ")
    }

    /// One line, for people.
    public var description: String { "\(kind.rawValue) \(cause)" }

    init(_ kind: Kind, cause: String) {
        self.kind = kind
        interface = nil
        index = 0
        isPort = false
        content = .words(cause)
    }

    private struct Interface {
        let name: String
        let index: UInt32
        let isPort: Bool

        init(_ link: LinkMessage) {
            name = link.name
            index = link.index
            isPort = link.master != nil
        }

        init(_ index: UInt32, _ table: NetworkTable) {
            let link = table.link(index)
            name = link?.name ?? "\(index)"
            self.index = index
            isPort = link?.master != nil
        }
    }

    private init(_ kind: Kind, _ interface: Interface?, _ content: Content) {
        self.kind = kind
        self.interface = interface?.name
        index = interface?.index ?? 0
        isPort = interface?.isPort ?? false
        self.content = content
    }

    /// What an announcement that changed something says.
    static func events(
        _ announcement: RouteNetlink, _ change: NetworkTable.Change, _ table: NetworkTable
    ) -> [NetworkEvent] {
        switch change {
        case .link(let old, let new):
            guard let link = new ?? old else { return [] }
            return [
                NetworkEvent(.link, Interface(link), .link(old: old, new: new))
            ]
        case .address(let old, let new):
            guard let address = new ?? old else { return [] }
            return [
                NetworkEvent(
                    .address, Interface(address.index, table), .address(old: old, new: new))
            ]
        case .routes:
            // The host's own addresses, which have events of their own.
            if case .newRoute(let route, _) = announcement, route.isOfLocalTable { return [] }
            if case .removedRoute(let route) = announcement, route.isOfLocalTable { return [] }
            return [event(announcement, table)]
        }
    }

    private static func event(_ announcement: RouteNetlink, _ table: NetworkTable) -> NetworkEvent {
        switch announcement {
        case .newRoute(let route, let replaces):
            return NetworkEvent(
                .route, interface(route, table), .newRoute(route, replaces: replaces))
        case .removedRoute(let route):
            return NetworkEvent(.route, interface(route, table), .removedRoute(route))
        case .rule: return NetworkEvent(.rule, cause: "a rule came or went")
        default: return NetworkEvent(.route, cause: "a nexthop object came or went")
        }
    }

    private static func interface(_ route: RouteMessage, _ table: NetworkTable) -> Interface? {
        route.hops.first?.interface.map { Interface($0, table) }
    }
}

extension LinkMessage {
    fileprivate var details: [String: String] {
        var details = [
            "name": name, "mtu": "\(mtu)", "state": flags.contains(.up) ? "up" : "down",
        ]
        if let operationalState { details["operational"] = "\(operationalState)" }
        if let hasCarrier { details["carrier"] = hasCarrier ? "1" : "0" }
        if let carrierDownCount { details["down-count"] = "\(carrierDownCount)" }
        if let kind { details["kind"] = kind }
        return details
    }
}

extension AddressMessage {
    fileprivate var details: [String: String] {
        var words: [String] = []
        if flags.contains(.tentative) { words.append("tentative") }
        if flags.contains(.duplicate) { words.append("duplicate") }
        if flags.contains(.deprecated) { words.append("deprecated") }
        let text = address.map { "\($0)/\(prefixLength)" } ?? ""
        return ["address": text, "flags": words.isEmpty ? "usable" : words.joined(separator: ",")]
    }
}

extension RouteMessage {
    /// RT_TABLE_LOCAL.
    fileprivate var isOfLocalTable: Bool { table == 255 }

    fileprivate var details: [String: String] {
        var details = ["metric": "\(priority)", "table": "\(table)"]
        details["destination"] = destination.map { "\($0)/\(destinationLength)" } ?? "default"
        if let gateway = hops.first?.gateway { details["gateway"] = "\(gateway)" }
        return details
    }
}
