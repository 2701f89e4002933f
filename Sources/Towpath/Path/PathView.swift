internal import TowpathReactor
internal import TowpathWire

/// One question to a ``NetworkObserver``, and the answer as it changes.
final class PathView: Sendable {
    struct Question: Sendable {
        var requirement = PathRequirement()
        var endpoint: Endpoint?
    }

    private struct State {
        var path: Path?
        /// Which evaluation it is of: several threads may evaluate, and the last begun counts.
        var number: UInt64 = 0
        /// How many paths there were.
        var version: UInt64 = 0
        /// The addresses of a host that was given by name; nil until they are known.
        var resolved: [IPAddress]?
        /// They are looked up for the first time: whether the host can be reached is not known yet.
        var isResolving = false
        /// What the kernel was asked last.
        var queries: [RouteQuery] = []
        var observers: [Int: Observer] = [:]
        var count = 0
        /// Somebody tells the observers now, and goes on while there is something new.
        var isTelling = false
    }

    private struct Observer {
        let call: @Sendable (Path) -> Void
        /// Which version it was told last.
        var version: UInt64 = 0
    }

    let question: Question
    let observer: NetworkObserver
    private let state = Locked(State())

    private init(_ question: Question, of observer: NetworkObserver) {
        self.question = question
        self.observer = observer
    }

    /// A view of the shared observer with these options.
    static func open(
        _ question: Question, _ options: NetworkObserver.Options
    ) throws(NetworkError) -> PathView {
        while true {
            let view = PathView(question, of: try .shared(options))
            // The observer may have ended with its last view meanwhile.
            guard view.observer.add(view) else { continue }
            view.resolve()
            return view
        }
    }

    func close() { observer.remove(self) }

    /// Evaluates it anew on the calling thread.
    func evaluate() { observer.evaluate(self) }

    /// The path now: evaluated on the calling thread if it never was.
    var path: Path {
        if let path = state.withLock({ $0.path }) { return path }
        observer.evaluate(self)
        return state.withLock { $0.path } ?? Path()
    }

    var queries: [RouteQuery] {
        get { state.withLock { $0.queries } }
        set { state.withLock { $0.queries = newValue } }
    }

    /// Calls with the path now and each later one, one call at a time; the newest, if several came
    /// while it was called.
    func observe(_ call: @escaping @Sendable (Path) -> Void) -> @Sendable () -> Void {
        _ = path
        let number = state.withLock { state in
            state.count += 1
            state.observers[state.count] = Observer(call: call)
            return state.count
        }
        tell()
        return { [weak self] in self?.removeObserver(number) }
    }

    private func removeObserver(_ number: Int) {
        let observer = state.withLock { $0.observers.removeValue(forKey: number) }
        withExtendedLifetime(observer) {}
    }

    /// True if it is another path than before, by which a name may have other addresses.
    @discardableResult
    func publish(_ path: Path, _ number: UInt64) -> Bool {
        let (isNew, isOther) = state.withLock { state in
            guard number >= state.number else { return (false, false) }
            state.number = number
            guard path != state.path else { return (false, false) }
            // Look-ups by a gateway that fails would only make it fail again.
            var before = state.path
            if path.isGatewayReachable != true {
                before?.isGatewayReachable = path.isGatewayReachable
            }
            state.path = path
            state.version += 1
            return (true, path != before)
        }
        if isNew { tell() }
        return isOther
    }

    private func tell() {
        let begins = state.withLock { state in
            defer { state.isTelling = true }
            return !state.isTelling
        }
        guard begins else { return }
        while let (path, observers) = news() {
            for observer in observers { observer.call(path) }
        }
    }

    /// The path, and who does not know it yet; nil once all do.
    private func news() -> (Path, [Observer])? {
        state.withLock { state in
            let version = state.version
            let unaware = state.observers.filter { $0.value.version < version }
            let isKnown = !state.isResolving || state.path?.status != .satisfied
            guard let path = state.path, isKnown, !unaware.isEmpty else {
                state.isTelling = false
                return nil
            }
            for number in unaware.keys { state.observers[number]?.version = version }
            return (path, Array(unaware.values))
        }
    }

    // MARK: The destination

    /// Nil where the path to everywhere is asked for.
    var destinations: [IPAddress]? {
        switch question.endpoint?.host {
        case .ipv4(let address)?: [.v4(address)]
        case .ipv6(let address)?: [IPAddress.v6(address).normalized]
        // Until the name is known, the way to everywhere stands for it.
        case .name?: state.withLock { $0.resolved }
        case nil: nil
        }
    }

    var port: UInt16? { question.endpoint?.port }

    /// Looks a host name up, again after the network changed.
    func resolve() {
        guard case .name(let name)? = question.endpoint?.host else { return }
        state.withLock { if $0.resolved == nil { $0.isResolving = true } }
        let families = question.requirement.family.map { [$0] } ?? [.ipv6, .ipv4]
        let answers = Answers(families.count)
        for family in families {
            Resolver.shared.lookUp(name, family == .ipv6 ? .ipv6 : .ipv4) { [weak self] answer in
                let found = (try? answer.get())?.compactMap(\.ipAddress) ?? []
                if let all = answers.note(family, found) { self?.adopt(all) }
            }
        }
    }

    /// Without an answer the earlier one stands.
    private func adopt(_ addresses: [IPAddress]) {
        state.withLock { if !addresses.isEmpty { $0.resolved = addresses } }
        if !addresses.isEmpty { evaluate() }
        state.withLock { $0.isResolving = false }
        tell()
    }

    /// One family alone would make an unsatisfied path of a host that the other one reaches.
    private final class Answers: Sendable {
        private struct State {
            var missing: Int
            var addresses: [AddressFamily: [IPAddress]] = [:]
        }

        private let state: Locked<State>

        init(_ count: Int) { state = Locked(State(missing: count)) }

        /// All of them, with the last.
        func note(_ family: AddressFamily, _ addresses: [IPAddress]) -> [IPAddress]? {
            state.withLock { state in
                state.missing -= 1
                state.addresses[family] = addresses
                guard state.missing == 0 else { return nil }
                return (state.addresses[.ipv6] ?? []) + (state.addresses[.ipv4] ?? [])
            }
        }
    }
}
