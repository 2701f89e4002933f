internal import TowpathReactor
internal import TowpathWire

/// Whether the gateways of paths answer: the kernel is asked with each evaluation, and its announcements of
/// neighbours say when to look again.
extension NetworkObserver {
    /// The gateway of a view's path.
    struct WatchedGateway {
        /// Which evaluation asked.
        let number: UInt64
        let query: NeighborQuery
        /// What it came to; nil until the kernel has answered.
        var state: NeighborMessage.State?
    }

    func ask(
        _ query: NeighborQuery, for view: PathView, _ number: UInt64
    ) -> NeighborMessage.State {
        guard options.watchesGateways, let client else { return [] }
        // First to be heard, then asked: nothing falls in between.
        note(WatchedGateway(number: number, query: query), for: view)
        let state = client.ask(query)
        note(WatchedGateway(number: number, query: query, state: state), for: view)
        return state
    }

    /// Of a path without one.
    func forgetGateway(of view: PathView, _ number: UInt64) {
        let view = ObjectIdentifier(view)
        state.withLock { state in
            if let gateway = state.gateways[view], number >= gateway.number {
                state.gateways[view] = nil
            }
        }
    }

    private func note(_ gateway: WatchedGateway, for view: PathView) {
        let view = ObjectIdentifier(view)
        state.withLock { state in
            // A later evaluation knows better, and a view may be gone.
            guard state.views[view] != nil, gateway.number >= state.gateways[view]?.number ?? 0
            else { return }
            state.gateways[view] = gateway
        }
    }
}

extension NetworkObserver.State {
    /// Whether an announcement may make other paths: any but one of a neighbour that is no gateway, or is
    /// as it was.
    func isNews(_ announcement: RouteNetlink) -> Bool {
        let (subject, state): (NeighborQuery?, NeighborMessage.State)
        switch announcement {
        case .newNeighbor(let neighbor): (subject, state) = (neighbor.subject, neighbor.state)
        case .removedNeighbor(let neighbor): (subject, state) = (neighbor.subject, [])
        default: return true
        }
        guard let subject else { return false }
        return gateways.values.contains { gateway in
            gateway.query == subject
                && (gateway.state.map { $0.isReachable != state.isReachable } ?? true)
        }
    }
}
