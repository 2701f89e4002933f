/// What comes out for one address family or one destination.
extension PathEvaluator {
    func outcome(_ family: AddressFamily, _ destinations: [IPAddress]?) -> Outcome {
        if let only = requirement.family, only != family { return Outcome() }
        let targets = destinations?.filter { $0.family == family } ?? Self.probes[family] ?? []
        var outcomes: [Outcome] = []
        for target in targets {
            var outcome = outcome(to: target)
            outcome.destination = target
            if outcome.verdict.isUsable { return outcome }
            outcomes.append(outcome)
        }
        let isWithoutRoute = outcomes.allSatisfy {
            $0.verdict == .unusable(.noRoute) || $0.verdict == .unusable(.interfaceExcluded)
        }
        // A switched-off or unplugged interface took its route along, or never had one.
        if destinations == nil, isWithoutRoute, let withoutRoute {
            outcomes = [Outcome(verdict: .unusable(withoutRoute))]
        }
        return outcomes.min { distance($0) < distance($1) } ?? Outcome()
    }

    private func distance(_ outcome: Outcome) -> Int {
        if case .unusable(let obstacle) = outcome.verdict { obstacle.distance } else { -1 }
    }

    /// The nearest reason for having no route at all; nil if it is just not there.
    private var withoutRoute: Path.Obstacle? {
        let links = table.links.values.map(\.message)
            .filter { !$0.flags.contains(.loopback) && $0.master == nil }
            .filter { requirement.allows($0.name, type(of: $0.index)) }
            .sorted { $0.index < $1.index }
        if links.contains(where: \.isUsable) { return nil }
        if let link = links.first(where: \.isDormant) { return .dormant(link.name) }
        if let link = links.first(where: { $0.flags.contains(.up) }) {
            return .noCarrier(link.name)
        }
        return links.first.map { .interfaceDown($0.name) }
    }

    /// The outcome for one destination, by any interface that is allowed.
    private func outcome(to destination: IPAddress) -> Outcome {
        guard requirement.selectsInterfaces else { return unrestricted(to: destination) }
        if let name = requirement.interface, table.link(named: name) == nil {
            return Outcome(verdict: .unusable(.interfaceMissing(name)))
        }
        if let zone = destination.zone, link(zone) == nil { return unrestricted(to: destination) }
        let zone = destination.zone.flatMap(link)
        let allowed = (zone.map { [$0] } ?? candidates(for: destination)).filter {
            requirement.allows($0.name, type(of: $0.index))
        }
        let outcomes = allowed.map { outcome(to: destination, interface: $0.index) }
        if let usable = outcomes.first(where: \.verdict.isUsable) { return usable }
        let nearest = outcomes.min { distance($0) < distance($1) }
        if let nearest, nearest.verdict != .unusable(.noRoute) { return nearest }
        // By which interface does it go, if not by these?
        let other = ask(query(destination, matchesTable: true))
        guard case .failed(let errno) = other, nearest != nil else {
            return Outcome(verdict: .unusable(.interfaceExcluded))
        }
        return Outcome(verdict: .unusable(Self.obstacle(errno)))
    }

    /// The outcome by any interface, or that of the zone.
    func unrestricted(to destination: IPAddress) -> Outcome {
        guard let zone = destination.zone else { return outcome(to: destination, interface: nil) }
        guard let link = link(zone) else {
            return Outcome(verdict: .unusable(.interfaceMissing(zone)))
        }
        return outcome(to: destination, interface: link.index)
    }

    /// The interface with this name or, as a zone may have it, this number (RFC 4007 §11).
    private func link(_ name: String) -> LinkMessage? {
        table.link(named: name) ?? UInt32(name).flatMap(table.link)
    }

    /// The interface that packets take now, those of default routes, then the others.
    private func candidates(for destination: IPAddress) -> [LinkMessage] {
        var first: [UInt32] = []
        if case .route(let route) = ask(query(destination)) {
            first = route.hops.compactMap(\.interface)
        }
        let others = table.links.keys.sorted()
        return ordered(first + preferred + others).compactMap { table.link($0) }
    }

    private func query(
        _ destination: IPAddress, interface: UInt32? = nil, matchesTable: Bool = false
    ) -> RouteQuery {
        let source = requirement.source.flatMap { $0.family == destination.family ? $0 : nil }
        return RouteQuery(
            to: destination, source: source, interface: interface, mark: requirement.mark,
            user: requirement.user, matchesTable: matchesTable)
    }

    private func outcome(to destination: IPAddress, interface: UInt32?) -> Outcome {
        // The table's entry first: asked for an interface, the other answer invents a way for IPv4.
        let match: RouteMessage
        switch ask(query(destination, interface: interface, matchesTable: true)) {
        // Of an interface without a route, IPv4 says the same as of an unreachable one.
        case .failed(let errno):
            let isNone = interface != nil && errno == Self.unreachable
            return Outcome(verdict: .unusable(isNone ? .noRoute : Self.obstacle(errno)))
        case .route(let route): match = route
        }
        guard case .route(let way) = ask(query(destination, interface: interface)) else {
            return Outcome(verdict: .unusable(.noRoute))
        }
        if match.kind == .local || way.kind == .local { return local(way, destination) }
        var outcome = Outcome()
        let hops = match.hops.filter { interface == nil || $0.interface == interface }
        let live = hops.filter { $0.interface.flatMap { table.link($0) }?.isUsable ?? false }
        outcome.isDegraded = !live.isEmpty && live.count < hops.count
        let taken = way.hops.first?.interface
        guard let hop = live.first(where: { $0.interface == taken }) ?? live.first else {
            return broken(hops, outcome)
        }
        let sorted = [hop] + live.filter { $0 != hop }
        outcome.interfaces = sorted.compactMap(\.interface)
        outcome.gateways = sorted.compactMap { hop in
            hop.gateway.map { zoned($0, hop.interface) }
        }
        outcome.gateway = sorted.lazy.compactMap(\.neighbor).first
        let source = source(way, match, hop, destination)
        outcome.verdict = verdict(source: source, hop.interface ?? 0, destination)
        if !outcome.verdict.isUsable {
            (outcome.interfaces, outcome.gateways, outcome.gateway) = ([], [], nil)
        }
        return outcome
    }

    /// The address that packets leave from. IPv4 does not repeat the one that it was asked about.
    private func source(
        _ way: RouteMessage, _ match: RouteMessage, _ hop: RouteMessage.Hop,
        _ destination: IPAddress
    ) -> IPAddress? {
        let asked = query(destination).source
        if way.hops.first?.interface == hop.interface {
            return asked ?? way.preferredSource ?? match.preferredSource
        }
        // The answer is about another way, a broken one.
        return asked ?? match.preferredSource
            ?? own(hop.interface ?? 0, destination).first(where: \.isUsable)?.address
    }

    /// The addresses of an interface that mean something there.
    private func own(_ index: UInt32, _ destination: IPAddress) -> [AddressMessage] {
        table.addresses(of: index).filter {
            $0.address?.family == destination.family && $0.reaches(destination)
        }
    }

    /// To an address of this host.
    private func local(_ way: RouteMessage, _ destination: IPAddress) -> Outcome {
        let index = way.hops.first?.interface ?? 0
        let name = table.link(index)?.name ?? "lo"
        return Outcome(
            verdict: .usable(interface: name, source: way.preferredSource ?? destination),
            interfaces: [index])
    }

    private func broken(_ hops: [RouteMessage.Hop], _ outcome: Outcome) -> Outcome {
        var outcome = outcome
        let links = hops.compactMap { $0.interface.flatMap { table.link($0) } }
        outcome.isTunnelDown = links.contains { $0.isTunnel }
        let obstacles = links.map { link -> Path.Obstacle in
            if link.isDormant { return .dormant(link.name) }
            return link.flags.contains(.up) ? .noCarrier(link.name) : .interfaceDown(link.name)
        }
        outcome.verdict = .unusable(obstacles.min { $0.distance < $1.distance } ?? .noRoute)
        return outcome
    }

    /// Whether packets have an address to leave from.
    private func verdict(
        source: IPAddress?, _ index: UInt32, _ destination: IPAddress
    ) -> Path.Verdict {
        let name = table.link(index)?.name ?? "\(index)"
        let own = own(index, destination)
        if let source {
            let messages = table.addresses.values.filter { $0.address == source }
            // An address may belong to another interface, but not to the loopback alone.
            if messages.contains(where: { message in
                message.isUsable && message.reaches(destination)
                    && !(table.link(message.index)?.flags.contains(.loopback) ?? true)
            }) {
                return .usable(interface: name, source: source)
            }
        }
        if own.contains(where: { $0.flags.contains(.duplicate) }) {
            return .unusable(.addressDuplicate(name))
        }
        if own.contains(where: { !$0.isUsable }) { return .unusable(.addressTentative(name)) }
        return .unusable(.noAddress(name))
    }

    /// EHOSTUNREACH.
    private static let unreachable: Int32 = 113

    /// Errors of RTM_GETROUTE, by the kind of the route or rule that answers.
    private static func obstacle(_ errno: Int32) -> Path.Obstacle {
        switch errno {
        case unreachable: .unreachable
        case 22: .blackhole
        case 13: .prohibited
        default: .noRoute
        }
    }

    private func zoned(_ gateway: IPAddress, _ index: UInt32?) -> IPAddress {
        guard case .v6(let address) = gateway, address.isLinkLocal, let index,
            let link = table.link(index),
            let zoned = try? address.withZone(link.name)
        else { return gateway }
        return .v6(zoned)
    }
}

extension IPAddress {
    /// The zone of a link-local address; others are the same everywhere.
    fileprivate var zone: String? {
        if case .v6(let address) = self, address.isLinkLocal { address.zone } else { nil }
    }

    fileprivate var isLinkLocal: Bool {
        switch self {
        case .v4(let address): address.isLinkLocal
        case .v6(let address): address.isLinkLocal
        }
    }
}

extension RouteMessage.Hop {
    fileprivate var neighbor: NeighborQuery? {
        guard let gateway, let interface else { return nil }
        return NeighborQuery(gateway, on: interface)
    }
}

extension AddressMessage {
    /// Whether it means something to that destination.
    fileprivate func reaches(_ destination: IPAddress) -> Bool {
        isGlobal || destination.isLinkLocal
    }
}
