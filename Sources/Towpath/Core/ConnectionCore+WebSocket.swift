internal import TowpathReactor
internal import TowpathWire

/// Messages in and out of a WebSocket.
extension ConnectionCore {
    /// Messages that lie unread beyond so many bytes stop the decoding of what was read with them.
    private static let unreadLimit = 262_144

    // MARK: In

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
            if let message = layer.messages.popFirst() {
                layer.unreadByteCount -= message.byteCount
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
                let bytes = UnsafeRawBufferPointer(rebasing: scratch[..<count])
                let taken = decode(bytes, layer)
                if taken < count { state.input.append(.init(rebasing: bytes[taken...])) }
            case .failed(let error):
                noteEnd(layer, error)
                return .failed(error)
            case let other: return other.map { _ in }
            }
        }
        if layer.messages.isEmpty, let end = layer.unreadEnd.take() { finish(&state, layer, end) }
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
    private func finish(
        _ state: inout State, _ layer: WebSocketLayer,
        _ end: Result<WebSocketCloseStatus, WebSocketError>
    ) {
        switch end {
        case .success(let status):
            // The answer has the same code (RFC 6455 §5.5.1).
            layer.sendClose(WebSocketCloseStatus(status.code))
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
            layer.unreadByteCount += message.byteCount
            layer.messages.append(message)
        case .ping(let payload): layer.answer(payload)
        case .pong(let payload): layer.finishPings(payload)
        case .close(let status): layer.unreadEnd = .success(status)
        }
    }

    /// Nothing follows; what came before can still be received.
    private func noteEnd(_ layer: WebSocketLayer, _ error: NetworkError) {
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
                layer.messages.isEmpty || layer.isClosing
            else { return false }
            switch readFrames(&state, layer) {
            case .done: if layer.end != nil { return true }
            case .failed: return true
            case .blocked: return false
            case .spent, .notOpen:
                _ = loop.schedule(at: MonotonicClock.now, self, tag: Self.pumpTag)
                return false
            }
        }
        _ = loop.schedule(at: MonotonicClock.now, self, tag: Self.pumpTag)
        return false
    }

    /// The next turn of a pump that had enough for one.
    func pumpOn() {
        var writer: UnsafeContinuation<Wake, Never>?
        let wakeups = state.withLock { state -> Wakeups? in
            guard let layer = state.webSocket else { return nil }
            if pump(&state, layer) { writer = takeWriter(&state) }
            return layer.takeWakeups()
        }
        writer?.resume(returning: .ready)
        if let wakeups { wake(wakeups) }
    }

    // MARK: Control frames

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
            layer.pingWaiters.append(.init(payload: layer.sendPing(), waiter: waiter))
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
    private func sendingLayer(_ state: inout State) throws(NetworkError) -> WebSocketLayer {
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
            guard layer.messages.isEmpty else { return nil }
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
            _ = layer.sendPing()
            sendControl(&state, layer)
            return layer.takeWakeups()
        }
        reader?.resume(returning: .ready)
        writer?.resume(returning: .ready)
        if let wakeups { wake(wakeups) }
    }

    // MARK: Out

    enum BegunSend {
        case done
        /// The right to send is held, and this is left.
        case rest(Frames)
        case notNow
    }

    /// Frames on their way.
    struct Frames {
        var bytes: ArraySlice<UInt8>
        /// The peer must get them whole: something of them has gone, or later ones refer to them.
        var isBound: Bool
    }

    /// Sends a message if the kernel takes it now.
    func sendMessageAtOnce(
        _ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer
    ) throws -> BegunSend {
        if Task.isCancelled { throw CancellationError() }
        let (begun, error) = state.withLock { state -> (BegunSend, NetworkError?) in
            guard state.phase == .ready, state.isWritable, !state.isSending, !state.outputFinished,
                !state.owes, state.failure == nil, !state.budget.isSpent(on: loop),
                let layer = state.webSocket, layer.end == nil, !layer.hasClosed, !layer.isClosing,
                !layer.hasControl
            else { return (.notNow, nil) }
            if layer.session.compresses(payload.count) {
                return put(&state, frames(layer, opcode, payload, isFinal: true))
            }
            let header = WebSocketFrameHeader(
                opcode, payloadCount: payload.count, maskKey: layer.maskKey)
            let count = header.count + payload.count
            guard count <= Scratch.byteCount else {
                return put(&state, frames(layer, opcode, payload, isFinal: true))
            }
            let target = UnsafeMutableRawBufferPointer(start: Scratch.buffer, count: count)
            header.write(payload, to: target)
            return put(&state, UnsafeRawBufferPointer(target), isBound: false) {
                Array(UnsafeRawBufferPointer(rebasing: target[$0...]))[...]
            }
        }
        if let error {
            deliverStates()
            throw error
        }
        return begun
    }

    private func put(_ state: inout State, _ frames: Frames) -> (BegunSend, NetworkError?) {
        frames.bytes.withUnsafeBytes { bytes in
            put(&state, bytes, isBound: frames.isBound) { frames.bytes.dropFirst($0) }
        }
    }

    private func put(
        _ state: inout State, _ bytes: UnsafeRawBufferPointer, isBound: Bool,
        rest: (Int) -> ArraySlice<UInt8>
    ) -> (BegunSend, NetworkError?) {
        switch put(&state, bytes) {
        case .done(let count):
            state.budget.spend(count)
            if count == bytes.count, !state.hasCiphertext { return (.done, nil) }
            state.isSending = true
            return (.rest(Frames(bytes: rest(count), isBound: isBound || count > 0)), nil)
        case .wouldBlock:
            state.isWritable = false
            state.isSending = true
            return (.rest(Frames(bytes: rest(0), isBound: isBound)), nil)
        case .failed(let code): return (.done, sendFailed(&state, code))
        }
    }

    /// A message's frame, behind the control frames that wait.
    private func frames(
        _ layer: WebSocketLayer, _ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer,
        isFinal: Bool, compresses: Bool? = nil
    ) -> Frames {
        var bytes = layer.takeControl()
        let compresses = compresses ?? layer.session.compresses(payload.count)
        let isBound = compresses || !bytes.isEmpty
        layer.session.append(
            opcode, payload, isFinal: isFinal, compressing: compresses, maskKey: layer.maskKey,
            to: &bytes)
        return Frames(bytes: bytes[...], isBound: isBound)
    }

    /// Sends a message that `sendMessageAtOnce` did not.
    func sendMessage(
        _ opcode: WebSocketOpcode, _ payload: [UInt8], timeout: Duration?
    ) async throws {
        let deadline = MonotonicClock.deadline(after: timeout)
        try await takeRightToSend(until: deadline)
        try await sendFrame(opcode, payload, isFinal: true, until: deadline)
    }

    /// Waits until nobody else sends, and the connection stands.
    func takeRightToSend(until deadline: UInt64) async throws {
        try await open(until: deadline, .send)
        let wake = await waitForTheRight(until: deadline)
        guard wake == .ready else { throw Self.error(for: wake) }
    }

    /// Sends a frame by one who holds the right to send, which goes on with the message's last frame, or if
    /// this throws.
    func sendFrame(
        _ opcode: WebSocketOpcode, _ payload: [UInt8], isFinal: Bool, until deadline: UInt64,
        mayCompress: Bool = true
    ) async throws {
        let frames: Frames
        do throws(NetworkError) {
            frames = try state.withLock { state throws(NetworkError) in
                let layer = try sendingLayer(&state)
                return payload.withUnsafeBytes {
                    self.frames(
                        layer, opcode, $0, isFinal: isFinal, compresses: mayCompress ? nil : false)
                }
            }
        } catch {
            endSending()
            throw error
        }
        try await finishSending(frames, until: deadline, keepsRight: !isFinal)
    }

    /// Sends the rest, by one who holds the right to send.
    func finishSending(
        _ frames: Frames, until deadline: UInt64, keepsRight: Bool = false
    ) async throws {
        let bytes = frames.bytes
        try await send(
            count: bytes.count, until: deadline, holdsRight: true, keepsRight: keepsRight,
            isBound: frames.isBound,
            write: { core, state, offset in
                bytes.withUnsafeBytes { core.put(&state, .init(rebasing: $0[offset...])) }
            }, rest: { bytes.dropFirst($0) })
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
        layer.messages = Ring()
        layer.unreadByteCount = 0
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

extension WebSocketCloseStatus {
    /// Whether the peer had nothing more to say.
    var isOrderly: Bool {
        code == .normalClosure || code == .goingAway || code == .noStatusReceived
    }
}
