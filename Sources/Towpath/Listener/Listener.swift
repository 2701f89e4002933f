package import TowpathReactor

/// Accepts connections and serves each in a task of its own.
///
/// Bound when `init` returns; what arrives waits in the kernel until ``run(on:_:)``. All methods may
/// be called from any task or thread. A listener that is dropped is closed.
public final class Listener<Top: NetworkProtocol>: Sendable {
    /// Where handlers run.
    public enum HandlerExecutor: Sendable {
        /// On the event loop of their connection: the cheapest. A handler that blocks, or computes for
        /// long, stalls all connections of that loop; `async let` runs there too.
        case eventLoop
        /// On Swift's concurrent executor: each wait costs a change of thread.
        case concurrentExecutor
    }

    enum Source: Sendable {
        case streams(StreamAcceptor)
        case datagrams(DatagramHub)
    }

    let source: Source
    let context: ListenerContext
    let security: ListenerSecurity?
    let webSocket: WebSocketOptions?
    let makeFraming: (@Sendable () -> any AnyObject & Sendable)?
    private let file: UnixSocketFile?

    /// The address it is bound to; the port is real where 0 was asked for.
    public let localEndpoint: Endpoint

    /// Binds and listens.
    ///
    /// - Parameters:
    ///   - endpoint: An address and port, `.port(7)` for all addresses of both families, or a Unix
    ///     path or abstract name. A stale Unix socket file is replaced; a live one is an error.
    ///   - parameters: The choice of path.
    ///   - stack: The topmost protocol, such as `TCP()` or `UDP()`.
    ///
    /// Throws ``NetworkError/Code/addressUnavailable`` if the port is in use or the address is no
    /// one's, ``NetworkError/Code/permissionDenied``, ``NetworkError/Code/optionFailed``, or
    /// ``NetworkError/Code/invalidEndpoint`` for a host name.
    public convenience init(
        on endpoint: Endpoint, parameters: Parameters = Parameters(),
        @ProtocolStackBuilder<Top> _ stack: () -> Top
    ) async throws(NetworkError) {
        try self.init(on: endpoint, parameters: parameters, stack()) { $0.accept() }
    }

    /// Calls accept(2) as `accept` does: tests put faults in between.
    package convenience init(
        on endpoint: Endpoint, parameters: Parameters = Parameters(), _ top: Top,
        accept: @escaping @Sendable (borrowing Descriptor) -> Accepted
    ) throws(NetworkError) {
        let stack = top.stack
        try self.init(try .bind(endpoint, parameters, stack.transport), stack, accept: accept)
    }

    /// Listens on a socket that is bound already, such as one passed by systemd: see ``PassedSocket``.
    ///
    /// The descriptor belongs to the listener from then on, also if this throws. Options of the stack
    /// are applied as far as a bound socket allows.
    public convenience init(
        adopting descriptor: Int32, parameters: Parameters = Parameters(),
        @ProtocolStackBuilder<Top> _ stack: () -> Top
    ) async throws(NetworkError) {
        let stack = stack().stack
        try self.init(try .adopt(descriptor, parameters, stack.transport), stack) { $0.accept() }
    }

    init(
        _ bound: consuming ListenerSocket, _ stack: ProtocolStack,
        accept: @escaping StreamAcceptor.Accept
    ) throws(NetworkError) {
        let context = ListenerContext()
        self.context = context
        file = bound.file
        security = try stack.tls.map { tls throws(NetworkError) in try ListenerSecurity(tls) }
        webSocket = stack.webSocket
        makeFraming = stack.makeFraming
        let setup = bound.setup
        do throws(SystemError) {
            let address = try bound.descriptor.localAddress()
            // An unnamed Unix socket can be passed, but nobody can connect to it by name.
            localEndpoint = Endpoint(address) ?? .unix("")
            let loop = try EventLoopGroup.shared.nearest()
            switch stack.transport {
            case .tcp:
                source = .streams(
                    try StreamAcceptor(
                        loop: loop, kind: address.family == .unix ? .unix : .tcp,
                        socket: bound.descriptor, setup: setup, context: context, accept: accept))
            case .udp(let udp):
                source = .datagrams(
                    try DatagramHub(
                        loop: loop, udp: udp, socket: bound.descriptor, address: address,
                        context: context))
            }
        } catch {
            throw NetworkError(error, .listen, "cannot listen")
        }
    }

    deinit { close() }

    /// The port; 0 for a Unix socket.
    public var port: UInt16 { localEndpoint.port ?? 0 }

    /// How many connections have a handler now.
    public var connectionCount: Int { context.live.count }

    // MARK: Set-up

    /// How many connections may have a handler at a time; beyond it, streams wait in the kernel to be
    /// accepted, and datagrams of new peers are dropped. Default: no limit.
    @discardableResult
    public func connectionLimit(_ count: Int) -> Listener {
        context.live.setLimit(count)
        return self
    }

    /// Calls `observer` for what happens beside the handlers, on whichever thread it happens: it must
    /// not block.
    @discardableResult
    public func onEvent(_ observer: @escaping @Sendable (ListenerEvent) -> Void) -> Listener {
        context.observe(observer)
        return self
    }

    /// Watches the event loops while the listener is open and reports, as
    /// ``ListenerEvent/stalled(_:)``, each time one does not go on for this long: for finding handlers
    /// that block. A thread looks four times per `threshold`, so the process is no longer idle.
    @discardableResult
    public func reportStalls(longerThan threshold: Duration) throws(NetworkError) -> Listener {
        do throws(SystemError) { try context.watch(threshold) } catch {
            throw NetworkError(error, .setup, "no watchdog")
        }
        return self
    }

    /// Serves clients that come from now on with other TLS options, such as a renewed certificate;
    /// connections that stand keep theirs. If the new ones cannot be used this throws, and the present
    /// ones stay. Options of TCP are not changed.
    public func update(_ top: Top) throws(NetworkError) {
        guard let security, let tls = top.stack.tls else {
            throw NetworkError(.notSupported, .setup, "only TLS options can be replaced")
        }
        try security.update(tls)
    }

    // MARK: Running

    /// Accepts connections and calls `handler` for each, in a child task of its own, until the listener
    /// has drained or was closed.
    ///
    /// A handler that returns closes its connection, one that throws aborts its own and no other (and
    /// is told to ``onEvent(_:)``), a cancelled one aborts. Cancelling the task that runs this cancels
    /// all handlers, waits for them and throws `CancellationError`. Throws a ``NetworkError`` if the
    /// listening socket breaks, and ``NetworkError/Code/closed`` if it has run already.
    public func run(
        on executor: HandlerExecutor = .eventLoop,
        _ handler: @escaping @Sendable (Connection<Top>) async throws -> Void
    ) async throws {
        try context.beginRun()
        // Cancellation reaches the handlers' tasks first, since their group was made last.
        let failure = await withTaskCancellationHandler {
            await withTaskExecutorPreference(loop) { await serveAll(on: executor, handler) }
        } onCancel: {
            context.live.wakeParked()
        }
        if let failure { throw failure }
        if context.drainDeadline == nil { try Task.checkCancellation() }
    }

    private func serveAll(
        on executor: HandlerExecutor,
        _ handler: @escaping @Sendable (Connection<Top>) async throws -> Void
    ) async -> NetworkError? {
        await withDiscardingTaskGroup { group in
            let failure = await accept(into: &group, on: executor, handler)
            if context.drainDeadline != nil, failure == nil {
                stopListening()
                _ = await context.live.waitUntilIdle(on: loop) { context.handlerDeadline }
            }
            // First of all: the peers of a UDP listener lose their socket when it closes.
            group.cancelAll()
            context.live.wakeParked()
            close()
            return failure
        }
    }

    private func accept(
        into group: inout DiscardingTaskGroup, on executor: HandlerExecutor,
        _ handler: @escaping @Sendable (Connection<Top>) async throws -> Void
    ) async -> NetworkError? {
        do throws(NetworkError) {
            while let core = try await nextCore() {
                let preference: any TaskExecutor =
                    executor == .eventLoop ? core.loop : globalConcurrentExecutor
                context.live.insert(core)
                group.addTask(executorPreference: preference) {
                    await self.serve(core, handler)
                }
            }
            return nil
        } catch {
            return error
        }
    }

    private func nextCore() async throws(NetworkError) -> ConnectionCore? {
        switch source {
        case .datagrams(let hub): return await hub.next()
        case .streams(let acceptor):
            if !context.live.hasRoom(),
                await !context.live.waitForRoom(on: loop, until: { context.handlerDeadline })
            {
                return nil
            }
            return try await acceptor.next()
        }
    }

    /// Comes to an end in good order: accepts what is queued, stops listening, tells the handlers
    /// (``Connection/isDraining``), and cancels those that are still there after `limit`; `run` then
    /// returns. Does not wait itself: signal handlers and service lifecycles can call it. Called again,
    /// the earlier end counts.
    public func drain(within limit: Duration = .seconds(30)) {
        context.beginDrain(until: MonotonicClock.deadline(after: limit))
        switch source {
        case .streams(let acceptor): acceptor.drain()
        case .datagrams(let hub): hub.drain()
        }
        context.live.interrupt()
        context.live.wakeParked()
    }

    /// Stops listening at once and removes the Unix socket file; `run` cancels its handlers and returns.
    public func close() {
        context.end()
        if case .datagrams(let hub) = source { hub.close() }
        stopListening()
        context.live.interrupt()
    }

    /// The peers of a UDP listener go on: they share its socket.
    private func stopListening() {
        if case .streams(let acceptor) = source { acceptor.close() }
        file?.remove()
    }

    private var loop: EventLoop {
        switch source {
        case .streams(let acceptor): acceptor.loop
        case .datagrams(let hub): hub.loop
        }
    }
}
