internal import TowpathReactor
internal import TowpathWire

/// From what is known to the paths of the views.
extension NetworkObserver {
    /// Evaluates on the pool; once more, if it is asked for while that goes on.
    func evaluateAll() {
        let begins = state.withLock { state in
            state.needsEvaluation = true
            defer { state.isEvaluating = true }
            return !state.isEvaluating && !state.isClosed
        }
        guard begins else { return }
        do throws(SystemError) {
            try BlockingPool.network.submit { [self] in
                while takeEvaluation() {
                    let views = state.withLock { $0.views.values.compactMap(\.view) }
                    guard !views.isEmpty else { continue }
                    let snapshot = snapshot()
                    for view in views where evaluate(view, snapshot) { view.resolve() }
                }
            }
        } catch {
            state.withLock { $0.isEvaluating = false }
        }
    }

    func takeEvaluation() -> Bool {
        state.withLock { state in
            state.isEvaluating = state.needsEvaluation
            defer { state.needsEvaluation = false }
            return state.needsEvaluation
        }
    }

    /// Evaluates one view on the calling thread, which may have to wait for the kernel.
    func evaluate(_ view: PathView) { _ = evaluate(view, snapshot()) }

    /// True if the network has come up for it: a name may have other addresses then.
    func evaluate(_ view: PathView, _ snapshot: Snapshot) -> Bool {
        // Mostly the questions are those of the last time: they are asked all at once.
        let known = client?.ask(view.queries) ?? []
        var queries: [RouteQuery] = []
        let evaluator = PathEvaluator(
            table: snapshot.lists.table, requirement: view.question.requirement,
            defaults: snapshot.defaults, nameServers: nameServers.list, types: snapshot.types,
            ask: { [client] query in
                if !queries.contains(query) { queries.append(query) }
                let answer = known.first { $0.query == query }?.answer
                return answer ?? client?.ask(query) ?? InterfacePoll.ask(query)
            }, askNeighbor: { [self] in ask($0, for: view, snapshot.number) })
        var path = evaluator.path(to: view.destinations, port: view.port)
        view.queries = queries
        if path.gateways.isEmpty { forgetGateway(of: view, snapshot.number) }
        path.isPolled = client == nil
        if case .hostPort? = view.question.endpoint, path.remoteEndpoint == nil {
            path.remoteEndpoint = view.question.endpoint
        }
        return view.publish(path, snapshot.number) && path.status == .satisfied
    }

    /// What is known at one moment.
    struct Snapshot {
        var number: UInt64 = 0
        var lists: NetworkLists
        var defaults: [RouteMessage] = []
        var types: [UInt32: InterfaceType] = [:]
    }

    /// Asks for the routes, and for the rules if they changed, without the lock.
    func snapshot() -> Snapshot {
        let (lists, rulesChanged, known, number, newRouteCount) = state.withLock { state in
            state.evaluationCount += 1
            defer { state.rulesChanged = false }
            return (
                state.lists, state.rulesChanged, state.types, state.evaluationCount,
                state.newRouteCount
            )
        }
        var snapshot = Snapshot(number: number, lists: lists)
        if let client {
            if rulesChanged { snapshot.lists.readRules(from: client) }
            snapshot.defaults = snapshot.lists.defaults(from: client)
        }
        let types = options.namespace == nil ? Self.types(lists.table, known) : [:]
        snapshot.types = types.compactMapValues(\.type)
        let (rules, hasManyRoutes) = (snapshot.lists.ruleTables, snapshot.lists.hasManyRoutes)
        let missing = snapshot.lists.missingTables
        state.withLock { state in
            state.types = types
            state.lists.hasManyRoutes = hasManyRoutes
            if state.newRouteCount == newRouteCount { state.lists.missingTables = missing }
            if rulesChanged { state.lists.ruleTables = rules }
            scheduleExpiry(&state, snapshot.defaults)
        }
        return snapshot
    }

    /// From sysfs, for interfaces that are new or renamed.
    static func types(
        _ table: NetworkTable, _ known: [UInt32: (name: String, type: InterfaceType?)]
    ) -> [UInt32: (name: String, type: InterfaceType?)] {
        var types: [UInt32: (name: String, type: InterfaceType?)] = [:]
        for (index, link) in table.links {
            let name = link.message.name
            if let old = known[index], old.name == name {
                types[index] = old
            } else {
                types[index] = (name, Sysfs.type(of: name))
            }
        }
        return types
    }

    /// A route that a router announced ends without a word; the kernel tells up to 30 s later.
    func scheduleExpiry(_ state: inout State, _ defaults: [RouteMessage]) {
        guard !state.isClosed, state.token != nil else { return }
        let seconds = defaults.compactMap(\.expires).min()
        guard seconds != nil || state.lists.isDoubtful else { return }
        let whole = UInt64(min(seconds ?? 1, state.lists.isDoubtful ? 1 : .max)) + 1
        // In its last hundredth of a second a route looks like one that stays: look behind that.
        let deadline = MonotonicClock.now + whole * 1_000_000_000 + 50_000_000
        // An earlier look stands, also where the route does not tell its end any more.
        if let timer = state.expiryTimer {
            guard deadline < state.expiry else { return }
            loop.cancel(timer)
        }
        state.expiry = deadline
        state.expiryTimer = loop.schedule(at: deadline, self, tag: Self.expiryTag)
    }

    // MARK: Without netlink

    func schedulePoll() {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.pollTimer = loop.schedule(
                at: MonotonicClock.deadline(after: options.pollInterval), self,
                tag: Self.pollTag)
        }
    }

    /// On the pool: the loop must not wait for the kernel.
    func poll() {
        try? BlockingPool.network.submit { [self] in lookAgain() }
        schedulePoll()
    }

    private func lookAgain() {
        let table = InterfacePoll.table()
        let isChanged = state.withLock { state in
            defer { state.lists.table = table }
            return !state.lists.table.isSame(as: table)
        }
        if isChanged { post([NetworkEvent(.gap, cause: "polled: the interfaces are others")]) }
        evaluateAll()
    }
}
