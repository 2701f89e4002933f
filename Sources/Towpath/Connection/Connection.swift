package import TowpathReactor

/// A connection to a peer over TCP, UDP or a Unix socket, with `Top` as its topmost protocol.
///
/// Nothing is opened by `init`: the first use does it, or ``start(timeout:)``. All methods may be
/// called from any task. Every waiting call takes a `timeout`, counted from the call, and obeys the
/// task's cancellation with `CancellationError`: a receive that ends so has consumed nothing, and a
/// send of which the kernel has taken nothing is withdrawn whole. A call that succeeds may have moved
/// bytes although the task was cancelled meanwhile.
///
/// Close it with ``close()`` or ``abort()``, or let `withConnection` or a ``Listener`` do so. One that
/// is dropped without being closed is closed at once, without waiting for what is under way.
public final class Connection<Top: NetworkProtocol>: Sendable {
    enum Core: Sendable {
        case live(ConnectionCore)
        /// The process has no event loop to offer.
        case impossible(NetworkError)
    }

    let core: Core
    /// The listener that accepted it.
    let listener: ListenerContext?
    /// The plain connection that this one was made of; it would close what they share.
    private let origin: (any AnyObject & Sendable)?
    /// What makes messages of bytes, where that is not a core's work.
    let framing: (any AnyObject & Sendable)?

    /// A connection to an endpoint.
    ///
    /// - Parameters:
    ///   - endpoint: Whom to connect to. Host names are resolved when the connection opens.
    ///   - parameters: The choice of path.
    ///   - stack: The topmost protocol, such as `TCP()` or `UDP()`.
    public convenience init(
        to endpoint: Endpoint, parameters: Parameters = Parameters(),
        @ProtocolStackBuilder<Top> _ stack: () -> Top
    ) {
        self.init(.success(endpoint), parameters, stack())
    }

    /// A connection to the endpoint that a text names, such as `"example.com:443"` or
    /// `"unix:/run/app.sock"`.
    ///
    /// The forms are those of ``Endpoint/init(parsing:)``. A text that is none of them makes a
    /// connection whose opening fails with ``NetworkError/Code/invalidEndpoint``.
    public convenience init(
        to text: String, parameters: Parameters = Parameters(),
        @ProtocolStackBuilder<Top> _ stack: () -> Top
    ) {
        let endpoint: Result<Endpoint, NetworkError>
        do throws(AddressError) { endpoint = .success(try Endpoint(parsing: text)) } catch {
            endpoint = .failure(NetworkError(error))
        }
        self.init(endpoint, parameters, stack())
    }

    private init(_ endpoint: Result<Endpoint, NetworkError>, _ parameters: Parameters, _ top: Top) {
        listener = nil
        origin = nil
        let stack = top.stack
        framing = stack.makeFraming?()
        let plan = ConnectionPlan(
            endpoint: endpoint, parameters: parameters, stack: stack)
        do throws(SystemError) {
            core = .live(
                ConnectionCore(
                    loop: try EventLoopGroup.shared.nearest(), kind: plan.kind, plan: plan))
        } catch {
            core = .impossible(NetworkError(error, .setup, "no event loop"))
        }
    }

    init(
        _ core: ConnectionCore, listener: ListenerContext? = nil,
        origin: (any AnyObject & Sendable)? = nil, framing: (any AnyObject & Sendable)? = nil
    ) {
        self.core = .live(core)
        self.listener = listener
        self.origin = origin
        self.framing = framing
    }

    deinit {
        if case .live(let core) = core { core.drop() }
    }

    func liveCore() throws(NetworkError) -> ConnectionCore {
        switch core {
        case .live(let core): return core
        case .impossible(let error): throw error
        }
    }

    // MARK: Life

    /// Opens the connection, if that has not begun, and waits until it is ready.
    ///
    /// Throws what makes the opening fail: the resolver's or the connection attempts' error, or
    /// ``NetworkError/Code/timedOut``. Cancelling the call, or its own timeout, does not end the
    /// opening, which others may wait for.
    public func start(timeout: Duration? = nil) async throws {
        try await liveCore().open(until: MonotonicClock.deadline(after: timeout), .connect)
    }

    /// Sends what is owed, ends both directions and waits until that is done, for at most 2 s.
    ///
    /// What was accepted by sends goes out, then the end (FIN); input is discarded until the peer's
    /// end. Calls that wait end with ``NetworkError/Code/closed``. After the 2 s the rest is dropped,
    /// visibly for the peer. In a cancelled task this is ``abort()``. A second call waits with the
    /// first.
    public func close() async {
        if case .live(let core) = core { await core.close() }
    }

    /// Ends the connection at once: a TCP peer sees a reset, and what was not yet sent is lost. Calls
    /// that wait end with ``NetworkError/Code/closed``.
    public func abort() {
        if case .live(let core) = core { core.abort() }
    }

    // MARK: States

    /// The state right now.
    public var state: ConnectionState {
        switch core {
        case .live(let core): core.connectionState
        case .impossible(let error): .failed(error)
        }
    }

    /// The state now and each one that follows, once and in order; ends after the last. Several may be
    /// read at the same time.
    public var states: AsyncStream<ConnectionState> {
        AsyncStream { continuation in
            let end = observe { state in
                continuation.yield(state)
                if state.isFinal { continuation.finish() }
            }
            continuation.onTermination = { _ in end() }
        }
    }

    /// Calls `observer` with the state now and each one that follows, once and in order, on whichever
    /// thread changes it: it must not block.
    @discardableResult
    public func onStateUpdate(
        _ observer: @escaping @Sendable (ConnectionState) -> Void
    ) -> Connection {
        _ = observe(observer)
        return self
    }

    /// Returns what ends the observation.
    private func observe(
        _ observer: @escaping @Sendable (ConnectionState) -> Void
    ) -> @Sendable () -> Void {
        switch core {
        case .live(let core): return core.observe(observer)
        case .impossible(let error):
            observer(.failed(error))
            return {}
        }
    }

    /// What it was made with; nil where it was not made here.
    var parameters: Parameters? {
        if case .live(let core) = core { core.plan?.parameters } else { nil }
    }

    // MARK: What is known of it

    /// The address on this side; nil before the connection is ready and after it is closed.
    public var localEndpoint: Endpoint? {
        if case .live(let core) = core { core.localEndpoint } else { nil }
    }

    /// The address on the other side, or, before there is one, the endpoint to connect to.
    public var remoteEndpoint: Endpoint? {
        if case .live(let core) = core { core.remoteEndpoint } else { nil }
    }

    /// How the connection was opened; nil before that is over, and where it was not opened here.
    public var establishmentReport: EstablishmentReport? {
        if case .live(let core) = core { core.report } else { nil }
    }

    /// Lends the socket, for what it has no words for here: tests read its options.
    package func withSocket<Value>(
        _ body: (borrowing Descriptor) throws(SystemError) -> Value
    ) throws(NetworkError) -> Value {
        try liveCore().onSocket(.setup, body)
    }

    /// The executor of the connection's event loop. A task that prefers it, as the handlers of a
    /// ``Listener`` and the body of `withConnection` do, saves a change of thread at each wait. Work
    /// that blocks there stalls all connections of the loop.
    public var executor: any TaskExecutor {
        if case .live(let core) = core { core.loop } else { globalConcurrentExecutor }
    }

    /// Whether the listener that accepted this connection wants its handlers to come to an end.
    public var isDraining: Bool { listener?.drain.isSignalled ?? false }

    /// Waits until the listener that accepted this connection drains, or the task is cancelled.
    ///
    /// For a task beside the one that serves the connection. On a connection that no listener accepted
    /// it waits for the cancellation.
    public func waitForDrain() async {
        guard case .live(let core) = core else { return }
        await (listener?.drain ?? DrainSignal()).wait(on: core.loop)
    }
}

extension ConnectionPlan {
    var kind: TransportKind {
        switch transport {
        case .tcp: isUnix ? .unix : .tcp
        case .udp: .datagram
        }
    }
}
