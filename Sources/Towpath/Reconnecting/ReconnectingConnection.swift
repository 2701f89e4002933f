internal import TowpathReactor
public import TowpathWire

/// A client that keeps itself connected: opens a connection, and another one each time it is lost.
///
///     let chat = ReconnectingConnection(to: "chat.example:443") { WebSocket(path: "/chat") { TLS() } }
///     try await chat.run { connection in
///         try await connection.send(.text("hello"))
///         for try await message in connection.messages { print(message) }
///     }
///
/// Between attempts it waits as its ``ReconnectPolicy`` says. While the host has no path to the other side
/// it tries nothing, and tries at once when the path returns. What was sent and not read by the peer when a
/// connection was lost is gone: what must arrive has to be said again, by the protocol on top.
///
/// All methods may be called from any task or thread.
public final class ReconnectingConnection<Top: NetworkProtocol>: Sendable {
    struct State {
        var hasRun = false
        var isClosed = false
        /// Why no connection follows.
        var end: NetworkError?
        var current: Connection<Top>?
        var waiters: [Waiter] = []
        /// Ends the wait or the attempt of the moment.
        var interrupt: (@Sendable () -> Void)?
        var observer: (@Sendable (ReconnectEvent) -> Void)?
    }

    let makeConnection: @Sendable () -> Connection<Top>
    let policy: ReconnectPolicy
    let state = Locked(State())

    /// A client for an endpoint. Nothing is opened before it runs.
    ///
    /// - Parameters:
    ///   - endpoint: Where to.
    ///   - parameters: The connections' parameters.
    ///   - policy: When to try again.
    ///   - stack: The protocols; made for each attempt, so that a field can have a token of the day.
    public init(
        to endpoint: Endpoint, parameters: Parameters = Parameters(),
        policy: ReconnectPolicy = ReconnectPolicy(),
        @ProtocolStackBuilder<Top> _ stack: @escaping @Sendable () -> Top
    ) {
        self.policy = policy
        makeConnection = { Connection(to: endpoint, parameters: parameters, stack) }
    }

    /// A client for the endpoint that a text names; one that names none is what ``run(_:)`` throws.
    ///
    /// See ``Connection/init(to:parameters:_:)-(String,_,_)`` for the text's forms.
    public init(
        to text: String, parameters: Parameters = Parameters(),
        policy: ReconnectPolicy = ReconnectPolicy(),
        @ProtocolStackBuilder<Top> _ stack: @escaping @Sendable () -> Top
    ) {
        self.policy = policy
        makeConnection = { Connection(to: text, parameters: parameters, stack) }
    }

    /// Calls `observer` with what happens, one after the other, on whichever thread it happens: it must not
    /// block. To be set before ``run(_:)``.
    @discardableResult
    public func onEvent(
        _ observer: @escaping @Sendable (ReconnectEvent) -> Void
    ) -> ReconnectingConnection {
        state.withLock { $0.observer = observer }
        return self
    }

    func tell(_ event: ReconnectEvent) {
        state.withLock { $0.observer }?(event)
    }

    // MARK: The connection

    /// The connection that stands, for other tasks than the body's; waits for one if none does.
    ///
    /// Throws ``NetworkError/Code/timedOut``, `CancellationError`, and once no other connection follows what
    /// ``run(_:)`` threw, or ``NetworkError/Code/closed``.
    public func connection(timeout: Duration? = nil) async throws -> Connection<Top> {
        let deadline = MonotonicClock.deadline(after: timeout)
        let loop = try Self.nearestLoop()
        while true {
            let waiter = Waiter()
            let found = try state.withLock { state throws(NetworkError) -> Connection<Top>? in
                if let current = state.current, !current.state.isFinal, current.end == nil {
                    return current
                }
                if let end = state.end { throw end }
                state.waiters.append(waiter)
                return nil
            }
            if let found { return found }
            let wake = await waiter.wait(on: loop, until: deadline)
            state.withLock { $0.waiters.removeAll { $0 === waiter } }
            switch wake {
            case .ready: continue
            case .cancelled: throw CancellationError()
            case .timedOut: throw NetworkError.timedOut(.connect, "no connection stood in time")
            }
        }
    }

    /// Ends the client: the connection that stands is closed in good order (``Connection/close()``), and
    /// ``run(_:)`` returns once its body has.
    public func close() async {
        let (current, interrupt) = state.withLock { state in
            state.isClosed = true
            return (state.current, state.interrupt)
        }
        interrupt?()
        await current?.close()
        // Nobody runs who would say so.
        let hasRun = state.withLock { $0.hasRun }
        if !hasRun { end(.closed(.connect)) }
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    func publish(_ connection: Connection<Top>?) {
        let waiters = state.withLock { state in
            state.current = connection
            guard connection != nil else { return [] as [Waiter] }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.finish(.ready) }
    }

    func end(_ error: NetworkError) {
        let waiters = state.withLock { state in
            state.end = error
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.finish(.ready) }
    }
}
