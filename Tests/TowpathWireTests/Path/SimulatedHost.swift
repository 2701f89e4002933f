import TowpathWire

/// What the kernel of a host would tell and answer, as notes of real ones say: routes by the longest
/// prefix, then the metric; sources; IPv4's invented ways.
struct SimulatedHost {
    enum State { case up, unknown, noCarrier, lowerLayerDown, down, dormant }

    private(set) var table = NetworkTable()
    var routes: [RouteMessage] = []
    /// Which way of a route with several a packet takes.
    var chosenHop = 0
    /// What a question gets whatever the routes are.
    var errnos: [RouteQuery: Int32] = [:]
    var types: [UInt32: InterfaceType] = [:]
    var neighbors: [NeighborQuery: NeighborMessage.State] = [:]

    init() throws {
        link(1, "lo", .unknown, kind: nil) {
            $0.flags.insert(.loopback)
            $0.hardwareType = 772
        }
        try address(1, "127.0.0.1", 8, scope: 254)
        try address(1, "::1", 128, scope: 254)
    }

    /// With w0 and w1, both up, with addresses of IPv4 and IPv6, and no default route.
    static func pair() throws -> SimulatedHost {
        var host = try SimulatedHost()
        host.link(10, "w0")
        host.link(11, "w1")
        try host.address(10, "192.0.2.2", 24)
        try host.address(11, "203.0.113.2", 24)
        try host.address(10, "2001:db8::2", 64)
        try host.address(11, "2001:db8:1::2", 64)
        try host.address(10, "fe80::a", 64, scope: 253)
        try host.address(11, "fe80::b", 64, scope: 253)
        host.routes = try [
            RouteMessage(.ipv4, to: "192.0.2.0", 24, hops: [RouteMessage.Hop(10)]),
            RouteMessage(.ipv4, to: "203.0.113.0", 24, hops: [RouteMessage.Hop(11)]),
            RouteMessage(.ipv6, to: "fe80::", 64, priority: 256, hops: [RouteMessage.Hop(10)]),
            RouteMessage(.ipv6, to: "fe80::", 64, priority: 256, hops: [RouteMessage.Hop(11)]),
        ]
        return host
    }

    mutating func link(
        _ index: UInt32, _ name: String, _ state: State = .up, kind: String? = "veth",
        _ configure: (inout LinkMessage) -> Void = { _ in }
    ) {
        let link = LinkMessage(index, name) {
            $0.kind = kind
            switch state {
            case .up: ($0.flags, $0.operationalState) = ([.up, .lowerUp, .running], .up)
            case .unknown: ($0.flags, $0.operationalState) = ([.up, .lowerUp], .unknown)
            case .noCarrier: ($0.flags, $0.operationalState) = ([.up], .down)
            case .lowerLayerDown: ($0.flags, $0.operationalState) = ([.up], .lowerLayerDown)
            case .down: ($0.flags, $0.operationalState) = ([], .down)
            case .dormant: ($0.flags, $0.operationalState) = ([.up, .lowerUp], .dormant)
            }
            configure(&$0)
        }
        _ = table.apply(.newLink(link))
    }

    /// What a datagram of the kernel tells.
    mutating func hear(_ bytes: [UInt8]) throws {
        for message in try contents(of: bytes) { _ = table.apply(message) }
    }

    mutating func address(
        _ index: UInt32, _ text: String, _ length: UInt8, flags: UInt32 = 0x80, scope: UInt8 = 0
    ) throws {
        let message = try AddressMessage(index, text, length, flags: flags, scope: scope)
        _ = table.apply(.newAddress(message))
    }

    mutating func removeAddresses(of index: UInt32, _ family: AddressFamily) {
        for message in table.addresses(of: index) where message.address?.family == family {
            _ = table.apply(.removedAddress(message))
        }
    }

    /// A default route; without a gateway it is on the link.
    mutating func addDefault(
        _ family: AddressFamily = .ipv4, by index: UInt32, via gateway: String? = nil,
        metric: UInt32 = 0, from source: String? = nil
    ) throws {
        routes.append(
            try RouteMessage(
                family, priority: metric, from: source,
                hops: [RouteMessage.Hop(index, gateway)]))
    }

    mutating func addDefault(_ family: AddressFamily = .ipv4, kind: RouteMessage.Kind) throws {
        // IPv6 names the loopback as the way.
        let hops = family == .ipv6 ? [try RouteMessage.Hop(1)] : []
        routes.append(
            try RouteMessage(family, priority: 10, hops: hops) { $0.kind = kind })
    }

    var defaults: [RouteMessage] { routes.filter { $0.destinationLength <= 1 } }

    func evaluator(
        _ requirement: PathRequirement = PathRequirement(), nameServers: [String] = []
    ) throws -> PathEvaluator {
        PathEvaluator(
            table: table, requirement: requirement, defaults: defaults,
            nameServers: try nameServers.map { try IPAddress(parsing: $0) }, types: types,
            ask: answer, askNeighbor: { neighbors[$0] ?? [] })
    }

    func path(
        _ requirement: PathRequirement = PathRequirement(), to texts: [String]? = nil,
        port: UInt16? = nil
    ) throws -> Path {
        let destinations = try texts.map { try $0.map { try IPAddress(parsing: $0) } }
        return try evaluator(requirement).path(to: destinations, port: port)
    }

    // MARK: The kernel

    func answer(_ query: RouteQuery) -> PathEvaluator.Answer {
        if let errno = errnos[query] { return .failed(errno: errno) }
        if let local = local(query) { return .route(local) }
        let isFour = query.destination.family == .ipv4
        let best = routes.filter { matches($0, query) }
            .min { ($1.destinationLength, $0.priority) < ($0.destinationLength, $1.priority) }
        guard let best else {
            guard isFour, let interface = query.interface else { return .failed(errno: 101) }
            return query.matchesTable ? .failed(errno: 113) : invented(query, interface)
        }
        switch best.kind {
        case .unreachable: return .failed(errno: 113)
        case .blackhole: return .failed(errno: 22)
        case .prohibit: return .failed(errno: 13)
        case .throw: return .failed(errno: 101)
        default: return .route(query.matchesTable ? best : way(best, query))
        }
    }

    private func matches(_ route: RouteMessage, _ query: RouteQuery) -> Bool {
        route.family == query.destination.family
            && bits(query.destination).starts(
                with: route.destination.map { bits($0).prefix(Int(route.destinationLength)) }
                    ?? [])
            && (query.interface == nil || route.kind != .unicast
                || route.hops.contains { $0.interface == query.interface })
    }

    private func bits(_ address: IPAddress) -> [UInt8] {
        let bytes =
            switch address {
            case .v4(let address): address.bytes
            case .v6(let address): address.bytes
            }
        return bytes.flatMap { byte in (0..<8).map { byte >> (7 - $0) & 1 } }
    }

    private func way(_ route: RouteMessage, _ query: RouteQuery) -> RouteMessage {
        var way = route
        let hops = route.hops.filter { query.interface == nil || $0.interface == query.interface }
        way.hops = [hops.count > chosenHop ? hops[chosenHop] : hops[0]]
        way.destination = query.destination
        // IPv4 repeats what it was asked for in another attribute.
        let isRepeated = query.source != nil && query.destination.family == .ipv4
        way.preferredSource =
            isRepeated ? nil : route.preferredSource ?? source(way.hops[0].interface, query)
        return way
    }

    private func invented(_ query: RouteQuery, _ index: UInt32) -> PathEvaluator.Answer {
        var way = RouteMessage()
        var hop = RouteMessage.Hop()
        hop.interface = index
        way.family = .ipv4
        way.hops = [hop]
        way.preferredSource = source(index, query)
        return .route(way)
    }

    private func source(_ index: UInt32?, _ query: RouteQuery) -> IPAddress? {
        let family = query.destination.family
        let own = table.addresses(of: index ?? 0).filter { $0.address?.family == family }
        guard family == .ipv6 else { return own.first?.address }
        if case .v6(let address) = query.destination, address.isLinkLocal {
            return own.first { !$0.isGlobal }?.address ?? .v6(.loopback)
        }
        return (own.first { $0.isGlobal && $0.isUsable } ?? own.first { !$0.isGlobal })?.address
            ?? .v6(.loopback)
    }

    private func local(_ query: RouteQuery) -> RouteMessage? {
        let own = table.addresses.values.first { $0.address == query.destination }
        var index = own?.index
        // All of 127.0.0.0/8 is.
        if case .v4(let address) = query.destination, address.isLoopback { index = 1 }
        guard let index else { return nil }
        var route = RouteMessage()
        var hop = RouteMessage.Hop()
        hop.interface = query.matchesTable ? index : 1
        (route.family, route.kind, route.hops) = (query.destination.family, .local, [hop])
        route.preferredSource = query.destination
        return route
    }
}
