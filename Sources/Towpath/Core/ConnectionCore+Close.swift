internal import TowpathReactor
internal import TowpathWire

/// The ways a connection ends.
extension ConnectionCore {
    /// How long `close()` waits for the peer's end: long enough for a slow path's last round trips,
    /// short enough that a dead peer holds no descriptor for long.
    static let closeLimit: Duration = .seconds(2)

    /// Sends what is owed, then a FIN, and discards input until the peer's FIN: closing with unread
    /// input would make the kernel reset the connection and lose what was sent.
    func close() async {
        await closeWebSocket(.init(.normalClosure))
        if Task.isCancelled { return abort() }
        let waiter = Waiter()
        let (wakeups, mustWait) = state.withLock { state in
            var wakeups = Wakeups()
            switch state.phase {
            case .failed, .closed:
                return (wakeups, false)
            case .setup, .preparing, .securing, .upgrading:
                destroy(&state, &wakeups)
                return (wakeups, false)
            case .closing: break
            case .ready where kind == .datagram || kind == .peer:
                destroy(&state, &wakeups)
                return (wakeups, false)
            case .ready:
                state.outputFinished = true
                let isIdle =
                    !state.isSending && !state.owes && (state.rare?.senders.isEmpty ?? true)
                if state.failure != nil || (state.inputEnded && isIdle) {
                    if state.failure == nil { _ = sendClosingAlert(&state) }
                    destroy(&state, &wakeups)
                    return (wakeups, false)
                }
                state.phase = .closing
                // finish() has sent the alert, but not the FIN that follows it now.
                if state.finSent, state.tls != nil { state.descriptor.shutdownOutput() }
                wakeups.reader = takeReader(&state)
                flushOwed(&state, &wakeups)
                state.orMakeRare.closeTimer = loop.schedule(
                    at: MonotonicClock.deadline(after: Self.closeLimit), self, tag: Self.closeTag)
            }
            state.orMakeRare.closeWaiters.append(waiter)
            return (wakeups, true)
        }
        wake(wakeups)
        guard mustWait else { return }
        continueClosing()
        if await waiter.wait(on: loop, until: .max) == .cancelled { abort() }
    }

    /// Ends the connection at once: TCP is reset.
    func abort() {
        let wakeups = state.withLock { state in
            var wakeups = Wakeups()
            if kind == .tcp { state.descriptor.resetOnClose() }
            destroy(&state, &wakeups)
            return wakeups
        }
        wake(wakeups)
    }

    /// Nobody holds the connection any more: closes the descriptor without waiting.
    func drop() {
        let wakeups = state.withLock { state in
            var wakeups = Wakeups()
            // As at the limit of close().
            if state.owes, kind == .tcp { state.descriptor.resetOnClose() }
            destroy(&state, &wakeups)
            return wakeups
        }
        wake(wakeups)
    }

    /// Discards input while closing, as far as one turn allows.
    func continueClosing() {
        let wakeups = state.withLock { state in
            var wakeups = Wakeups()
            guard state.phase == .closing else { return wakeups }
            discardInput(&state)
            let isOver = state.finSent && state.inputEnded
            if isOver || state.failure != nil { destroy(&state, &wakeups) }
            return wakeups
        }
        wake(wakeups)
    }

    func closeLimitReached() {
        let wakeups = state.withLock { state in
            var wakeups = Wakeups()
            guard state.phase == .closing else { return wakeups }
            // What is dropped must not look like a clean end to the peer.
            if !state.finSent, kind == .tcp { state.descriptor.resetOnClose() }
            destroy(&state, &wakeups)
            return wakeups
        }
        wake(wakeups)
    }

    private func discardInput(_ state: inout State) {
        let scratch = UnsafeMutableRawBufferPointer(
            start: Scratch.buffer, count: Scratch.byteCount)
        for _ in 0..<TurnBudget.callLimit where !state.inputEnded && state.isReadable {
            switch state.descriptor.receive(into: scratch) {
            case .done(let count) where count > 0:
                if count < scratch.count, !state.distrustsShortReads { state.isReadable = false }
            case .wouldBlock:
                state.isReadable = false
            case .done:
                state.inputEnded = true
            case .failed(let code):
                state.inputEnded = true
                // Before the FIN it is the end of what is still owed, too.
                if !state.finSent {
                    fail(&state, NetworkError(SystemError(code, "recv"), .close, "not sent whole"))
                }
            }
        }
        let rare = state.orMakeRare
        if state.isReadable, !state.inputEnded, !rare.isDiscarding {
            rare.isDiscarding = true
            _ = loop.schedule(at: MonotonicClock.now, self, tag: Self.discardTag)
        }
    }

    /// Closes the descriptor and wakes all who wait for anything: they find the phase changed.
    private func destroy(_ state: inout State, _ wakeups: inout Wakeups) {
        guard state.phase != .closed, state.phase != .failed else { return }
        state.phase = .closed
        if let descriptor = state.descriptor.take(), let token = state.token {
            loop.deregister(descriptor, token: token)
            state.token = nil
        }
        wakeups.reader = takeReader(&state) ?? wakeups.reader
        wakeups.writer = takeWriter(&state) ?? wakeups.writer
        state.input = InputBuffer()
        state.tls = nil
        if let layer = state.webSocket {
            layer.release()
            if let timer = layer.timer { loop.cancel(timer) }
            if let new = layer.takeWakeups() { wakeups.waiters += new.waiters }
        }
        if let peer { peer.hub.remove(peer) }
        guard let rare = state.rare else { return }
        if state.failure == nil { rare.broadcast?.post(.cancelled) }
        wakeups.broadcast = rare.broadcast
        if let timer = rare.closeTimer { loop.cancel(timer) }
        wakeups.establishing = rare.establishing
        wakeups.waiters +=
            rare.senders + rare.readyWaiters + rare.finishWaiters + rare.closeWaiters
        let kept = Rare()
        kept.broadcast = rare.broadcast
        kept.report = rare.report
        state.rare = kept
    }
}

extension Optional where Wrapped == Descriptor, Wrapped: ~Copyable {
    fileprivate borrowing func resetOnClose() {
        switch self {
        case .some(let descriptor): descriptor.resetOnClose()
        case .none: break
        }
    }

    fileprivate borrowing func receive(into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
        switch self {
        case .some(let descriptor): descriptor.receive(into: buffer)
        case .none: .wouldBlock
        }
    }
}
