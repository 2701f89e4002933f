/// From what the kernel told, and what it answers now, to a ``Path``.
///
/// Knows no socket: questions go through `ask`, so that recorded answers do as well. The kernel's answer
/// counts, not the list of its routes: it honours rules, tables, metrics, marks and users. What it does
/// not look at is checked here: the carrier, and the address that packets would leave from.
package struct PathEvaluator {
    package enum Answer: Equatable, Sendable {
        case route(RouteMessage)
        case failed(errno: Int32)
    }

    /// A family's destinations stand for the whole Internet, one in each half: tunnels like to have
    /// two routes of length 1. No packet goes there.
    private static let probes: [AddressFamily: [IPAddress]] = [
        .ipv4: [
            .v4(IPv4Address(1, 1, 1, 1)),
            .v4(IPv4Address(193, 0, 14, 129)),
        ],
        .ipv6: [.v6(IPv6Address(high: 0x2001_07FD_0000_0000, low: 1))],
    ]

    /// What came out for one family.
    private struct Outcome {
        var verdict = Path.Verdict.unusable(.noRoute)
        var interfaces: [UInt32] = []
        var gateways: [IPAddress] = []
        var isDegraded = false
        var isTunnelDown = false
        var destination: IPAddress?
    }

    package let table: NetworkTable
    package let requirement: PathRequirement
    /// Default routes, in the order of the kernel's list.
    package let defaults: [RouteMessage]
    package let nameServers: [IPAddress]
    /// Interfaces that are wireless or a modem, as far as sysfs tells.
    package let types: [UInt32: InterfaceType]
    private let ask: (RouteQuery) -> Answer

    package init(
        table: NetworkTable, requirement: PathRequirement = PathRequirement(),
        defaults: [RouteMessage], nameServers: [IPAddress] = [],
        types: [UInt32: InterfaceType] = [:], ask: @escaping (RouteQuery) -> Answer
    ) {
        self.table = table
        self.requirement = requirement
        self.defaults = defaults
        self.nameServers = nameServers
        self.types = types
        self.ask = ask
    }

    /// The path to anywhere, or, with addresses of one host, to that.
    package func path(to destinations: [IPAddress]? = nil, port: UInt16? = nil) -> Path {
        let four = outcome(.ipv4, destinations)
        let six = outcome(.ipv6, destinations)
        var path = Path()
        (path.ipv4, path.ipv6) = (four.verdict, six.verdict)
        path.isDegraded = four.isDegraded || six.isDegraded
        path.interfaces = interfaces(
            first: four.interfaces + six.interfaces, isGeneral: destinations == nil)
        path.gateways = (four.gateways + six.gateways).reduce(into: []) { list, gateway in
            if !list.contains(gateway) { list.append(gateway) }
        }
        decide(&path, [four, six])
        if let first = path.interfaces.first {
            path.isExpensive = requirement.isExpensive(first.name, first.type)
            path.isConstrained = requirement.isConstrained(first.name)
            path.isUltraConstrained = requirement.isUltraConstrained(first.name)
        }
        path.supportsDNS = nameServers.contains { server in
            usable(outcome(to: server, interface: nil).verdict) != nil
        }
        if destinations != nil { addEndpoints(&path, [six, four], port) }
        return path
    }

    private func decide(_ path: inout Path, _ outcomes: [Outcome]) {
        if path.supportsIPv4 || path.supportsIPv6 {
            path.status = .satisfied
            return
        }
        let obstacles = outcomes.compactMap { outcome -> Path.Obstacle? in
            if case .unusable(let obstacle) = outcome.verdict { obstacle } else { nil }
        }
        let nearest = obstacles.min { $0.distance < $1.distance } ?? .noRoute
        path.obstacle = nearest
        path.unsatisfiedReason =
            outcomes.contains(where: \.isTunnelDown) ? .vpnInactive : .notAvailable
        if case .dormant = nearest { path.status = .requiresConnection }
    }

    private func addEndpoints(_ path: inout Path, _ outcomes: [Outcome], _ port: UInt16?) {
        for outcome in outcomes {
            guard let source = usable(outcome.verdict), let remote = outcome.destination else {
                continue
            }
            path.localEndpoint = .hostPort(host: Host(source), port: 0)
            path.remoteEndpoint = .hostPort(host: Host(remote), port: port ?? 0)
            return
        }
    }

    private func usable(_ verdict: Path.Verdict) -> IPAddress? {
        if case .usable(_, let source) = verdict { source } else { nil }
    }

    // MARK: One family

    private func outcome(_ family: AddressFamily, _ destinations: [IPAddress]?) -> Outcome {
        if let only = requirement.family, only != family { return Outcome() }
        let targets = destinations?.filter { $0.family == family } ?? Self.probes[family] ?? []
        var outcomes = targets.map { target in
            var outcome = outcome(to: target)
            outcome.destination = target
            return outcome
        }
        if destinations == nil, outcomes.allSatisfy({ $0.verdict == .unusable(.noRoute) }) {
            // A switched-off or unplugged interface took its route along, or never had one.
            outcomes = [Outcome(verdict: .unusable(withoutRoute))]
        }
        return outcomes.first { $0.verdict.isUsable }
            ?? outcomes.min { distance($0) < distance($1) } ?? Outcome()
    }

    private func distance(_ outcome: Outcome) -> Int {
        if case .unusable(let obstacle) = outcome.verdict { obstacle.distance } else { -1 }
    }

    /// The nearest reason for having no route at all.
    private var withoutRoute: Path.Obstacle {
        let links = table.links.values.map(\.message)
            .filter { !$0.flags.contains(.loopback) && $0.master == nil }
            .sorted { $0.index < $1.index }
        if links.contains(where: \.isUsable) { return .noRoute }
        if let link = links.first(where: \.isDormant) { return .dormant(link.name) }
        if let link = links.first(where: { $0.flags.contains(.up) }) {
            return .noCarrier(link.name)
        }
        if let link = links.first { return .interfaceDown(link.name) }
        return .noRoute
    }

    /// The outcome for one destination, by any interface that is allowed.
    private func outcome(to destination: IPAddress) -> Outcome {
        guard requirement.selectsInterfaces else {
            return outcome(to: destination, interface: nil)
        }
        if let name = requirement.interface, table.link(named: name) == nil {
            return Outcome(verdict: .unusable(.interfaceMissing(name)))
        }
        let allowed = candidates.filter { requirement.allows($0.name, type(of: $0.index)) }
        let outcomes = allowed.map { outcome(to: destination, interface: $0.index) }
        return outcomes.first { $0.verdict.isUsable }
            ?? outcomes.min { distance($0) < distance($1) }
            ?? Outcome(verdict: .unusable(.interfaceExcluded))
    }

    /// The interface that packets take now, those of default routes, then the others.
    private var candidates: [LinkMessage] {
        let first = Self.probes.values.joined().flatMap { probe -> [UInt32] in
            if case .route(let route) = ask(query(probe)) {
                route.hops.compactMap(\.interface)
            } else {
                []
            }
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
        case .failed(let errno): return Outcome(verdict: .unusable(Self.obstacle(errno)))
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
        // The source that was answered is that of the way taken, which may be a broken one.
        let source =
            hop.interface == taken
            ? source(way, match, destination) : ownSource(of: hop.interface ?? 0, destination)
        outcome.verdict = verdict(source: source, hop.interface ?? 0, destination.family)
        if !outcome.verdict.isUsable { (outcome.interfaces, outcome.gateways) = ([], []) }
        return outcome
    }

    /// The address that packets leave from. IPv4 does not repeat the one that it was asked about.
    private func source(
        _ way: RouteMessage, _ match: RouteMessage, _ destination: IPAddress
    ) -> IPAddress? {
        query(destination).source ?? way.preferredSource ?? match.preferredSource
    }

    private func ownSource(of index: UInt32, _ destination: IPAddress) -> IPAddress? {
        table.addresses(of: index)
            .first { $0.address?.family == destination.family && $0.isUsable && $0.isGlobal }?
            .address
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
        source: IPAddress?, _ index: UInt32, _ family: AddressFamily
    ) -> Path.Verdict {
        let name = table.link(index)?.name ?? "\(index)"
        let own = table.addresses(of: index).filter { $0.address?.family == family && $0.isGlobal }
        if let source {
            let messages = table.addresses.values.filter { $0.address == source }
            // An address may belong to another interface, but not to the loopback alone.
            if messages.contains(where: { message in
                message.isUsable && message.isGlobal
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

    /// Errors of RTM_GETROUTE, by the kind of the route or rule that answers.
    private static func obstacle(_ errno: Int32) -> Path.Obstacle {
        switch errno {
        case 113: .unreachable
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
