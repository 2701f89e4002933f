internal import TowpathReactor
internal import TowpathWire

/// Messages of a WebSocket that come.
extension ConnectionCore {
    /// Messages that lie unread beyond so many bytes stop the decoding of what was read with them.
    private static let unreadLimit = 262_144

    /// The next message.
    func takeMessage(_ state: inout State) -> Step<WebSocketMessage> {
        guard state.phase == .ready else {
            switch state.phase {
            case .setup, .preparing, .securing, .upgrading: return .notOpen
            case .ready, .failed, .closing, .closed:
                return .failed(state.failure ?? .closed(.receive))
            }
        }
        guard let layer = state.webSocket else { return .failed(.noWebSocket) }
        for _ in 0..<TurnBudget.callLimit {
            if layer.isClosing { return .failed(.closed(.receive)) }
            if let message = layer.takeMessage() {
                if layer.mayHaveMore, !layer.hasMessage { schedulePump(layer) }
                return .done(message)
            }
            if let end = layer.unreadEnd.take() { finish(&state, layer, end) }
            if let end = layer.end { return .failed(end) }
            switch readFrames(&state, layer) {
            case .done: break
            case .failed(let error): return .failed(layer.end ?? error)
            case .blocked: return .blocked
            case .spent: return .spent
            case .notOpen: return .notOpen
            }
        }
        return .spent
    }

    /// The next message; nil once the peer closed in good order.
    func takeMessageOrEnd(_ state: inout State) -> Step<WebSocketMessage?> {
        let step = takeMessage(&state)
        if case .failed = step, let status = state.webSocket?.closeStatus, status.isOrderly {
            return .done(nil)
        }
        return step.map { $0 }
    }

    /// Decodes what was read before, or reads once.
    private func readFrames(_ state: inout State, _ layer: WebSocketLayer) -> Step<Void> {
        if !state.input.isEmpty {
            state.input.consume { decode($0, layer) }
        } else {
            let scratch = UnsafeMutableRawBufferPointer(
                start: Scratch.buffer, count: Scratch.byteCount)
            switch read(&state, into: scratch) {
            case .done(0): leftWithoutClose(layer)
            case .done(let count):
                layer.hasHeard = true
                layer.mayHaveMore = count == scratch.count
                let bytes = UnsafeRawBufferPointer(rebasing: scratch[..<count])
                let taken = decode(bytes, layer)
                if taken < count { state.input.append(.init(rebasing: bytes[taken...])) }
            case .failed(let error):
                noteEnd(layer, error)
                return .failed(error)
            case let other: return other.map { _ in }
            }
        }
        if !layer.hasMessage, let end = layer.unreadEnd.take() { finish(&state, layer, end) }
        if layer.hasControl { sendControl(&state, layer) }
        return .done(())
    }

    /// How many of the bytes were taken.
    private func decode(_ bytes: UnsafeRawBufferPointer, _ layer: WebSocketLayer) -> Int {
        var rest = bytes
        do throws(WebSocketError) {
            while layer.unreadByteCount < Self.unreadLimit,
                let event = try layer.session.next(&rest)
            {
                note(event, layer)
            }
            return bytes.count - rest.count
        } catch {
            layer.unreadEnd = .failure(error)
            return bytes.count
        }
    }

    /// The peer closed or broke the rules, and is answered.
    func finish(
        _ state: inout State, _ layer: WebSocketLayer,
        _ end: Result<WebSocketCloseStatus, WebSocketError>
    ) {
        switch end {
        case .success(let status):
            // The answer is the same (RFC 6455 §5.5.1).
            layer.sendClose(status)
            layer.closeStatus = status
            noteEnd(layer, .closedByPeer(status))
        case .failure(let error):
            layer.sendClose(WebSocketCloseStatus(error.code))
            noteEnd(
                layer,
                NetworkError(
                    error.code == .messageTooBig ? .messageTooLong : .protocolViolation, .receive,
                    error.message, cause: .webSocket(.init(error.code, error.message))))
        }
        sendControl(&state, layer)
    }

    private func note(_ event: WebSocketSession.Event, _ layer: WebSocketLayer) {
        switch event {
        case .message(let message):
            guard !layer.isClosing else { return }
            layer.keep(message)
        case .ping(let payload): layer.answer(payload)
        case .pong(let payload): layer.finishPings(payload)
        case .close(let status): layer.unreadEnd = .success(status)
        }
    }

    /// Nothing follows; what came before can still be received.
    func noteEnd(_ layer: WebSocketLayer, _ error: NetworkError) {
        if layer.end == nil { layer.end = error }
        if layer.closeStatus == nil { layer.closeStatus = .init(.abnormalClosure) }
        layer.finishAll()
    }

    private func leftWithoutClose(_ layer: WebSocketLayer) {
        noteEnd(layer, .closedByPeer(.init(.abnormalClosure)))
    }

    /// Reads while nobody receives, until a message lies unread: so that pings are answered and closes seen
    /// by one who only sends. True if that ended the connection.
    func pump(_ state: inout State, _ layer: WebSocketLayer) -> Bool {
        for _ in 0..<TurnBudget.callLimit {
            guard state.phase == .ready, !state.isReceiving, state.failure == nil, layer.end == nil,
                !layer.hasMessage || layer.isClosing
            else { return false }
            switch readFrames(&state, layer) {
            case .done: if layer.end != nil { return true }
            case .failed: return true
            case .blocked: return false
            case .spent, .notOpen:
                schedulePump(layer)
                return false
            }
        }
        schedulePump(layer)
        return false
    }

    private func schedulePump(_ layer: WebSocketLayer) {
        guard !layer.willPump else { return }
        layer.willPump = true
        _ = loop.schedule(at: MonotonicClock.now, self, tag: Self.pumpTag)
    }

    /// The next turn of a pump that had enough for one.
    func pumpOn() {
        var writer: UnsafeContinuation<Wake, Never>?
        let wakeups = state.withLock { state -> Wakeups? in
            guard let layer = state.webSocket else { return nil }
            layer.willPump = false
            if pump(&state, layer) { writer = takeWriter(&state) }
            return layer.takeWakeups()
        }
        writer?.resume(returning: .ready)
        if let wakeups { wake(wakeups) }
    }
}

extension WebSocketCloseStatus {
    /// Whether the peer had nothing more to say.
    var isOrderly: Bool {
        code == .normalClosure || code == .goingAway || code == .noStatusReceived
    }
}
