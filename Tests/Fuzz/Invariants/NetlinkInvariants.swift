internal import TowpathWire

/// What is wrong with how the bytes are read as a datagram from netlink; nil if nothing is.
///
/// Every message is read or refused, and the iteration ends. What was read can be put into a table,
/// where the same again changes nothing, and paths can be evaluated from that table and those routes.
/// What neighbours there are changes nothing of a path but what it says of its gateway.
package func netlinkFault(in bytes: [UInt8]) -> String? {
    var messages = NetlinkMessages(bytes[...])
    var count = 0
    var table = NetworkTable()
    var routes: [RouteMessage] = []
    var neighbors: [NeighborQuery: NeighborMessage.State] = [:]
    while let message = try? messages.next() {
        count += 1
        guard count * NetlinkMessage.headerSize <= bytes.count else { return "too many messages" }
        guard let content = try? RouteNetlink(message) else { continue }
        _ = table.apply(content)
        let change = table.apply(content)
        guard change == nil || change == .routes else { return "\(content) changes twice" }
        switch content {
        case .newRoute(let route, _): routes.append(route)
        case .newNeighbor(let neighbor):
            guard change == nil else { return "a neighbour changes the table" }
            if let subject = neighbor.subject { neighbors[subject] = neighbor.state }
        default: break
        }
    }
    if (try? messages.next()) != nil { return "a message after the end" }
    guard table.isSame(as: table) else { return "a table is not the same as itself" }
    return pathFault(table, routes, neighbors)
}

private func pathFault(
    _ table: NetworkTable, _ routes: [RouteMessage],
    _ neighbors: [NeighborQuery: NeighborMessage.State]
) -> String? {
    var requirements = [PathRequirement(), PathRequirement(), PathRequirement()]
    requirements[1].interface = table.links.values.first?.message.name ?? ""
    requirements[2].prohibitedTypes = [.wifi]
    requirements[2].expensive = ["*a?"]
    let destinations = routes.compactMap(\.destination)
    for requirement in requirements {
        func paths(_ neighbors: [NeighborQuery: NeighborMessage.State]) -> [Path] {
            let evaluator = PathEvaluator(
                table: table, requirement: requirement, defaults: routes,
                nameServers: destinations, ask: { answer($0, routes) },
                askNeighbor: { neighbors[$0] ?? [] })
            return [evaluator.path(), evaluator.path(to: destinations, port: 1)]
        }
        for (path, other) in zip(paths(neighbors), paths([:])) {
            if let fault = fault(path, table) { return "\(path): \(fault)" }
            var path = path
            guard other.isGatewayReachable == nil else { return "\(path): an unknown gateway" }
            path.isGatewayReachable = nil
            guard path == other else { return "\(path): a neighbour makes another path" }
        }
    }
    return nil
}

/// The first route of the family, whatever it leads to.
private func answer(_ query: RouteQuery, _ routes: [RouteMessage]) -> PathEvaluator.Answer {
    let route = routes.first { route in
        route.family == query.destination.family
            && (query.interface == nil || route.hops.contains { $0.interface == query.interface })
    }
    guard var route else { return .failed(errno: query.interface == nil ? 101 : 113) }
    switch route.kind {
    case .blackhole: return .failed(errno: 22)
    case .prohibit: return .failed(errno: 13)
    case .unreachable: return .failed(errno: 113)
    case .throw: return .failed(errno: 101)
    case .unicast, .local, .other: break
    }
    if !query.matchesTable { route.hops = Array(route.hops.suffix(1)) }
    return .route(route)
}

private func fault(_ path: Path, _ table: NetworkTable) -> String? {
    let isUsable = path.supportsIPv4 || path.supportsIPv6
    guard isUsable == (path.status == .satisfied) else { return "the status is wrong" }
    guard isUsable == (path.obstacle == nil), isUsable == (path.unsatisfiedReason == nil) else {
        return "the reason is wrong"
    }
    guard (path.localEndpoint == nil) == (path.remoteEndpoint == nil) else {
        return "one endpoint is missing"
    }
    guard path.isGatewayReachable == nil || !path.gateways.isEmpty else {
        return "a gateway that is not there answers"
    }
    guard Set(path.interfaces.map(\.index)).count == path.interfaces.count else {
        return "an interface is there twice"
    }
    guard path.interfaces.allSatisfy({ table.link($0.index)?.isUsable ?? false }) else {
        return "an interface is not usable"
    }
    guard !path.description.isEmpty, !path.explanation.isEmpty else { return "no words" }
    return nil
}
