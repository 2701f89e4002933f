internal import TowpathReactor
internal import TowpathWire

extension ReconnectingConnection {
    private enum Outcome {
        /// The body has done what it was for, or the client was closed.
        case done
        case lost(NetworkError)
    }

    /// Connects, and calls `body` with each connection that stands, on its event loop.
    ///
    /// - A body that returns while its connection stands, or once it has closed it, has done its work: the
    ///   connection is closed, and this returns.
    /// - One that returns because the peer ended or the connection broke, or throws a ``NetworkError``, is
    ///   called again with the next connection. To have another one, throw one, or ``Connection/abort()``
    ///   the present while the body waits for something of it.
    /// - Any other error it throws ends the connection and is thrown.
    ///
    /// Throws the last ``NetworkError`` once the policy gives up, and `CancellationError` if the task is
    /// cancelled, which aborts the connection. Returns after ``close()``. Runs once; again, it throws
    /// ``NetworkError/Code/closed``.
    public func run(_ body: (Connection<Top>) async throws -> Void) async throws {
        let isFirst = state.withLock { state in
            defer { state.hasRun = true }
            return !state.hasRun
        }
        guard isFirst else {
            throw NetworkError(.closed, .setup, "a client runs once; make a new one to run again")
        }
        do {
            try await keepConnected(body)
            end(.closed(.connect))
        } catch {
            end(error as? NetworkError ?? .closed(.connect))
            throw error
        }
    }

    private func keepConnected(_ body: (Connection<Top>) async throws -> Void) async throws {
        var backoff = Backoff(policy)
        while !isClosed {
            let connection = makeConnection()
            let monitor = connection.hasPath ? connection.paths : nil
            let error: NetworkError
            var stood: Duration?
            if let failure = try await open(connection, monitor, attempt: backoff.failureCount + 1)
            {
                error = failure
                if isClosed { return }
                tell(.attemptFailed(error))
            } else {
                let start = MonotonicClock.now
                guard case .lost(let reason) = try await serve(connection, body) else { return }
                error = reason
                tell(.disconnected(error))
                stood = .nanoseconds(Int64(clamping: MonotonicClock.now - start))
            }
            let random = Double.random(in: 0...1)
            guard let delay = backoff.wait(after: error, stood: stood, random: random) else {
                throw error
            }
            tell(.waiting(delay))
            _ = try await interruptible { try await Self.wait(delay, monitor) }
        }
    }

    /// What makes the attempt fail; nil if the connection stands.
    private func open(
        _ connection: Connection<Top>, _ monitor: PathMonitor?, attempt: Int
    ) async throws -> NetworkError? {
        do {
            let isOpen = try await interruptible {
                if let monitor { try await self.waitForPath(monitor) }
                self.tell(.connecting(attempt: attempt))
                try await connection.start()
            }
            guard !isOpen else { return nil }
            connection.abort()
            return .closed(.connect)
        } catch {
            connection.abort()
            guard let error = error as? NetworkError else { throw error }
            return error
        }
    }

    private func serve(
        _ connection: Connection<Top>, _ body: (Connection<Top>) async throws -> Void
    ) async throws -> Outcome {
        publish(connection)
        tell(.connected)
        defer { publish(nil) }
        do {
            // Closed before it was published.
            if !isClosed {
                try await withTaskExecutorPreference(connection.executor) {
                    try await body(connection)
                }
            }
            let end = connection.end
            await connection.close()
            return end.map { isClosed ? .done : .lost($0) } ?? .done
        } catch let error as NetworkError {
            guard !isClosed else {
                await connection.close()
                return .done
            }
            connection.abort()
            return .lost(error)
        } catch {
            connection.abort()
            throw error
        }
    }

    // MARK: Waiting

    /// False if `close()` ended it.
    private func interruptible(
        _ operation: @escaping @Sendable () async throws -> Void
    ) async throws -> Bool {
        let task = Task { try await operation() }
        let isClosed = state.withLock { state in
            state.interrupt = { task.cancel() }
            return state.isClosed
        }
        if isClosed { task.cancel() }
        defer { state.withLock { $0.interrupt = nil } }
        do {
            try await withTaskCancellationHandler {
                try await task.value
            } onCancel: {
                task.cancel()
            }
            return true
        } catch is CancellationError where !Task.isCancelled {
            return false
        }
    }

    private func waitForPath(_ monitor: PathMonitor) async throws {
        let hasTold = Locked(false)
        do {
            try await monitor.waitUntil { path in
                guard path.status == .unsatisfied else { return true }
                let isFirst = hasTold.withLock { hasTold in
                    defer { hasTold = true }
                    return !hasTold
                }
                if isFirst { self.tell(.waitingForPath(path)) }
                return false
            }
        } catch is NetworkError {
            // Without a monitor the attempt itself shows whether there is a path.
        }
    }

    /// Waits, but no longer than until a path that is lost meanwhile returns.
    private static func wait(_ delay: Duration, _ monitor: PathMonitor?) async throws {
        let deadline = MonotonicClock.deadline(after: delay)
        if let monitor {
            let isLost = Locked(false)
            do {
                try await monitor.waitUntil(timeout: delay) { path in
                    isLost.withLock { isLost in
                        if path.status == .unsatisfied { isLost = true }
                        return isLost && path.status != .unsatisfied
                    }
                }
                return
            } catch is NetworkError {
                // In time, or because there is no monitor: then the rest is waited for.
            }
        }
        let wake = await Waiter().wait(on: try nearestLoop(), until: deadline)
        if wake == .cancelled { throw CancellationError() }
    }

    static func nearestLoop() throws(NetworkError) -> EventLoop {
        do throws(SystemError) { return try EventLoopGroup.shared.nearest() } catch {
            throw NetworkError(error, .setup, "no event loop")
        }
    }
}

extension Connection {
    /// Whether there has to be a path to the other side.
    fileprivate var hasPath: Bool {
        if case .hostPort? = remoteEndpoint { true } else { false }
    }

    /// Why it no longer stands; nil while it does, was never opened, or was closed on this side.
    var end: NetworkError? {
        guard case .live(let core) = core else { return nil }
        return core.state.withLock { state in
            if state.phase == .closing || state.phase == .closed { return nil }
            if let webSocket = state.webSocket {
                // The peer's answer to a close is no reason.
                if webSocket.isClosing { return nil }
                if state.failure == nil {
                    if let end = webSocket.end { return end }
                    if let status = webSocket.closeStatus { return .closedByPeer(status) }
                }
            }
            if let failure = state.failure { return failure }
            guard state.inputEnded else { return nil }
            return NetworkError(.endOfStream, .receive, "the peer ended the connection")
        }
    }
}
