internal import TowpathReactor
internal import TowpathTLS

/// TLS of a listener: the present generation of its options, and the handshakes under way.
final class ListenerSecurity: Sendable {
    private struct State {
        var tls: TLS
        var context: TLSContext
        var underWay = 0
        var waiters: [Waiter] = []
    }

    private let state: Locked<State>

    init(_ tls: TLS) throws(NetworkError) {
        state = Locked(State(tls: tls, context: try Self.context(of: tls)))
    }

    private static func context(of tls: TLS) throws(NetworkError) -> TLSContext {
        do throws(TLSError) { return try TLSContexts.context(for: tls.serverConfiguration()) } catch
        {
            throw NetworkError(error, .setup)
        }
    }

    /// The earlier generation stays if the new one cannot be used, and for connections that have it.
    func update(_ tls: TLS) throws(NetworkError) {
        let context = try Self.context(of: tls)
        state.withLock { state in
            state.tls = tls
            state.context = context
        }
    }

    /// Negotiates TLS with a client.
    func secure(_ core: ConnectionCore) async throws(NetworkError) {
        let (tls, context) = state.withLock { ($0.tls, $0.context) }
        let deadline = MonotonicClock.deadline(after: tls.handshakeTimeout)
        guard await enter(tls.handshakeLimit, on: core.loop, until: deadline) else {
            throw .timedOut(.tls, "other handshakes took all the time")
        }
        defer { leave() }
        try core.beginSecuring { () throws(TLSError) in try TLSEngine(context) }
        try await core.secure(with: tls, until: deadline)
        core.wake(core.endSecuring())
    }

    private func enter(_ limit: Int, on loop: EventLoop, until deadline: UInt64) async -> Bool {
        let waiter = Waiter()
        let isFree = state.withLock { state in
            guard state.underWay >= limit else {
                state.underWay += 1
                return true
            }
            state.waiters.append(waiter)
            return false
        }
        if isFree { return true }
        // The one who leaves hands its place over.
        if await waiter.wait(on: loop, until: deadline) == .ready { return true }
        state.withLock { $0.waiters.removeAll { $0 === waiter } }
        return false
    }

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
