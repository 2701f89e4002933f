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
    static let probes: [AddressFamily: [IPAddress]] = [
        .ipv4: [
            .v4(IPv4Address(1, 1, 1, 1)),
            .v4(IPv4Address(193, 0, 14, 129)),
        ],
        .ipv6: [.v6(IPv6Address(high: 0x2001_07FD_0000_0000, low: 1))],
    ]

    /// What came out for one family.
    struct Outcome {
        var verdict = Path.Verdict.unusable(.noRoute)
        var interfaces: [UInt32] = []
        var gateways: [IPAddress] = []
        /// The first of them, as it is asked for.
        var gateway: NeighborQuery?
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
    let ask: (RouteQuery) -> Answer
    /// What the kernel knows of a gateway; called for one at most.
    let askNeighbor: (NeighborQuery) -> NeighborMessage.State

    package init(
        table: NetworkTable, requirement: PathRequirement = PathRequirement(),
        defaults: [RouteMessage], nameServers: [IPAddress] = [],
        types: [UInt32: InterfaceType] = [:], ask: @escaping (RouteQuery) -> Answer,
        askNeighbor: @escaping (NeighborQuery) -> NeighborMessage.State = { _ in [] }
    ) {
        self.table = table
        self.requirement = requirement
        self.defaults = defaults
        self.nameServers = nameServers
        self.types = types
        self.ask = ask
        self.askNeighbor = askNeighbor
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
        path.isGatewayReachable = (four.gateway ?? six.gateway).flatMap {
            askNeighbor($0).isReachable
        }
        decide(&path, [four, six])
        if let first = path.interfaces.first {
            path.isExpensive = requirement.isExpensive(first.name, first.type)
            path.isConstrained = requirement.isConstrained(first.name)
            path.isUltraConstrained = requirement.isUltraConstrained(first.name)
        }
        path.supportsDNS = nameServers.contains { server in
            usable(unrestricted(to: server).verdict) != nil
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
}
