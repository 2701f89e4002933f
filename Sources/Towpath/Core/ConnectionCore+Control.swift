internal import TowpathReactor
internal import TowpathWire

/// Control frames of a WebSocket: pings, keep-alive, the closing handshake.
extension ConnectionCore {
    /// Sends the control frames that wait, unless somebody is in the middle of a frame: then they follow
    /// it. Behind a server's Close frame goes the end (RFC 6455 §7.1.1).
    func sendControl(_ state: inout State, _ layer: WebSocketLayer) {
        var wakeups = Wakeups()
        if layer.hasClosed, layer.end != nil, layer.isServer { state.outputFinished = true }
        flushOwed(&state, &wakeups)
        layer.merge(wakeups)
    }

    /// Sends a ping and waits for its pong.
    func ping(timeout: Duration?) async throws -> Duration {
        let deadline = MonotonicClock.deadline(after: timeout)
        try await open(until: deadline, .send)
        let waiter = Waiter()
        let start = MonotonicClock.now
        let wakeups = try state.withLock { state throws(NetworkError) -> Wakeups? in
            let layer = try sendingLayer(&state)
            layer.pingWaiters.append(.init(number: layer.sendPing(), waiter: waiter))
            sendControl(&state, layer)
            _ = pump(&state, layer)
            return layer.takeWakeups()
        }
        if let wakeups { wake(wakeups) }
        let outcome = await waiter.wait(on: loop, until: deadline)
        let failure = state.withLock { state -> NetworkError? in
            guard let layer = state.webSocket else { return state.failure ?? .closed(.receive) }
            layer.pingWaiters.removeAll { $0.waiter === waiter }
            return state.failure ?? layer.end
        }
        switch outcome {
        case .ready:
            if let failure { throw failure }
            return .nanoseconds(Int64(clamping: MonotonicClock.now - start))
        case .cancelled: throw CancellationError()
        case .timedOut:
            throw NetworkError.timedOut(.receive, "no pong came in time, or a message lies unread")
        }
    }

    /// The layer of a connection on which frames can be sent.
    func sendingLayer(_ state: inout State) throws(NetworkError) -> WebSocketLayer {
        if let failure = state.failure { throw failure }
        guard state.phase == .ready else { throw .closed(.send) }
        guard let layer = state.webSocket else { throw .noWebSocket }
        if let end = layer.end { throw end }
        guard !layer.hasClosed, !layer.isClosing else { throw .closed(.send) }
        return layer
    }

    // MARK: Keep-alive

    func scheduleKeepAlive(_ layer: WebSocketLayer) {
        guard let interval = layer.options.keepAliveInterval else { return }
        layer.timer = loop.schedule(
            at: MonotonicClock.deadline(after: interval), self, tag: Self.keepAliveTag)
    }

    func keepAliveDeadlineReached() {
        var (reader, writer): (UnsafeContinuation<Wake, Never>?, UnsafeContinuation<Wake, Never>?)
        let wakeups = state.withLock { state -> Wakeups? in
            guard state.phase == .ready, let layer = state.webSocket, layer.end == nil,
                !layer.isClosing, state.failure == nil
            else { return nil }
            scheduleKeepAlive(layer)
            // Nothing is read while a message lies unread.
            guard !layer.hasMessage else { return nil }
            if layer.hasHeard {
                layer.hasHeard = false
                layer.missedPongCount = 0
                return nil
            }
            guard layer.missedPongCount < layer.options.missedPongLimit else {
                noteEnd(
                    layer, .timedOut(.receive, "the peer does not answer pings any more"))
                if let end = layer.end { fail(&state, end) }
                (reader, writer) = (takeReader(&state), takeWriter(&state))
                layer.merge(Wakeups(broadcast: state.rare?.broadcast))
                return layer.takeWakeups()
            }
            layer.missedPongCount += 1
            layer.sendPing()
            sendControl(&state, layer)
            return layer.takeWakeups()
        }
        reader?.resume(returning: .ready)
        writer?.resume(returning: .ready)
        if let wakeups { wake(wakeups) }
    }

    // MARK: The closing handshake

    /// Sends a Close frame behind what was accepted, and waits for the peer's, for as long as the options
    /// say (RFC 6455 §7.1.2). Nothing without a WebSocket.
    func closeWebSocket(_ status: WebSocketCloseStatus) async {
        guard let begun = state.withLock({ beginClosing(&$0) }) else { return }
        wake(begun.wakeups)
        let deadline = MonotonicClock.deadline(after: begun.timeout)
        if begun.isFirst {
            guard await waitForTheRight(until: deadline) == .ready else { return }
            state.withLock { state in
                if state.phase == .ready { state.webSocket?.sendClose(status) }
            }
            endSending()
        }
        await waitForClose(until: deadline)
    }

    private struct BegunClose {
        let timeout: Duration
        let isFirst: Bool
        let wakeups: Wakeups
    }

    private func beginClosing(_ state: inout State) -> BegunClose? {
        guard state.phase == .ready, state.failure == nil, let layer = state.webSocket,
            layer.end == nil
        else { return nil }
        let isFirst = !layer.isClosing
        layer.isClosing = true
        layer.dropMessages()
        if let end = layer.unreadEnd.take() { finish(&state, layer, end) }
        return BegunClose(
            timeout: layer.options.closeTimeout, isFirst: isFirst,
            wakeups: Wakeups(reader: takeReader(&state)))
    }

    private func waitForClose(until deadline: UInt64) async {
        let waiter = Waiter()
        let (mustWait, wakeups) = state.withLock { state -> (Bool, Wakeups?) in
            guard state.phase == .ready, state.failure == nil, let layer = state.webSocket,
                layer.end == nil
            else { return (false, state.webSocket?.takeWakeups()) }
            layer.closeWaiters.append(waiter)
            _ = pump(&state, layer)
            return (true, layer.takeWakeups())
        }
        if let wakeups { wake(wakeups) }
        guard mustWait else { return }
        _ = await waiter.wait(on: loop, until: deadline)
        state.withLock { $0.webSocket?.closeWaiters.removeAll { $0 === waiter } }
    }
}
