internal import TowpathReactor
internal import TowpathTLS

/// TLS of a listener: the present generation of its options, and the handshakes under way.
final class ListenerSecurity: Sendable {
    /// What a handshake needs of the options.
    private final class Generation: Sendable {
        let context: TLSContext
        let hooks: TLSHooks?
        let timeout: Duration
        let limit: Int

        init(_ tls: TLS) throws(NetworkError) {
            hooks = tls.hooks
            timeout = tls.handshakeTimeout
            limit = tls.handshakeLimit
            do throws(TLSError) {
                context = try TLSContexts.context(for: tls.serverConfiguration())
            } catch {
                throw NetworkError(error, .setup)
            }
        }
    }

    private struct State {
        var generation: Generation
        var underWay = 0
        var waiters: [Waiter] = []
    }

    private let state: Locked<State>

    init(_ tls: TLS) throws(NetworkError) {
        state = Locked(State(generation: try Generation(tls)))
    }

    /// The earlier generation stays if the new one cannot be used, and for connections that have it.
    func update(_ tls: TLS) throws(NetworkError) {
        let generation = try Generation(tls)
        state.withLock { $0.generation = generation }
    }

    /// Negotiates TLS with a client.
    func secure(_ core: ConnectionCore) async throws(NetworkError) {
        let generation = generation
        let deadline = MonotonicClock.deadline(after: generation.timeout)
        if let waiter = enter(generation.limit) {
            try await wait(waiter, on: core.loop, until: deadline)
        }
        defer { leave() }
        try begin(core, generation.context)
        try await core.secure(with: generation.hooks, until: deadline)
        core.wake(core.endSecuring())
    }

    @inline(never)
    private func begin(_ core: ConnectionCore, _ context: TLSContext) throws(NetworkError) {
        try core.beginSecuring { () throws(TLSError) in try TLSEngine(context) }
    }

    private var generation: Generation {
        @inline(never) get { state.withLock { $0.generation } }
    }

    /// Takes a place, or queues for one.
    @inline(never)
    private func enter(_ limit: Int) -> Waiter? {
        state.withLock { state in
            guard state.underWay >= limit else {
                state.underWay += 1
                return nil
            }
            let waiter = Waiter()
            state.waiters.append(waiter)
            return waiter
        }
    }

    /// The one who leaves hands its place over.
    @inline(never)
    private func wait(
        _ waiter: Waiter, on loop: EventLoop, until deadline: UInt64
    ) async throws(NetworkError) {
        if await waiter.wait(on: loop, until: deadline) == .ready { return }
        state.withLock { $0.waiters.removeAll { $0 === waiter } }
        throw .timedOut(.tls, "other handshakes took all the time")
    }

    @inline(never)
    private func leave() {
        while true {
            let next = state.withLock { state -> Waiter? in
                guard !state.waiters.isEmpty else {
                    state.underWay -= 1
                    return nil
                }
                return state.waiters.removeFirst()
            }
            guard let next, !next.finish(.ready) else { return }
        }
    }
}
