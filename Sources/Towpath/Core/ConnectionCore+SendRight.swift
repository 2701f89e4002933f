internal import TowpathReactor

/// Who may send: one at a time, in order, then the FIN.
extension ConnectionCore {
    /// Queues behind the others.
    func waitForTheRight(until deadline: UInt64) async -> Wake {
        let waiter = Waiter()
        let isFree = state.withLock { state in
            guard state.isSending || state.owes else {
                state.isSending = true
                return true
            }
            state.orMakeRare.senders.append(waiter)
            return false
        }
        if isFree { return .ready }
        let wake = await waiter.wait(on: loop, until: deadline)
        if wake != .ready {
            state.withLock { $0.rare?.senders.removeAll { $0 === waiter } }
        }
        return wake
    }

    /// Gives the right on, and leaves `owing` for the loop to send before the next sender.
    func endSending(owing: ArraySlice<UInt8> = []) {
        let wakeups = state.withLock { state in
            var wakeups = Wakeups()
            state.isSending = false
            if !owing.isEmpty, state.isOpen, state.failure == nil {
                state.orMakeRare.owed = owing
                armOutput(&state)
            }
            flushOwed(&state, &wakeups)
            return wakeups
        }
        wake(wakeups)
    }

    func passSending(to first: Waiter) {
        var sender: Waiter? = first
        while let next = sender, !next.finish(.ready) {
            // It stopped waiting meanwhile.
            let wakeups = state.withLock { state in
                var wakeups = Wakeups()
                state.isSending = false
                offerSending(&state, &wakeups)
                return wakeups
            }
            sender = wakeups.sender
            for waiter in wakeups.waiters { waiter.finish(.ready) }
        }
    }

    /// Sends what is owed, if nobody else is sending, then lets the next one send.
    func flushOwed(_ state: inout State, _ wakeups: inout Wakeups) {
        guard !state.isSending else { return }
        // A receive may have met the end first: then nobody waits for what is owed.
        if state.failure != nil { state.rare?.owed = [] }
        while state.failure == nil, state.hasToSend, state.isWritable {
            let rare = state.orMakeRare
            let transfer = rare.owed.withUnsafeBytes { put(&state, $0) }
            switch transfer {
            case .done(let written):
                rare.owed.removeFirst(written)
                if rare.owed.isEmpty { rare.owed = [] }
            case .wouldBlock:
                state.isWritable = false
            case .failed(let code):
                _ = sendFailed(&state, code)
                wakeups.broadcast = rare.broadcast
                rare.owed = []
            }
        }
        offerSending(&state, &wakeups)
    }

    /// Lets the next sender go, or, where none is left, sends the FIN that finish() asked for.
    private func offerSending(_ state: inout State, _ wakeups: inout Wakeups) {
        guard !state.isSending, !state.owes else { return }
        if let rare = state.rare, !rare.senders.isEmpty {
            state.isSending = true
            wakeups.sender = rare.senders.removeFirst()
        } else if state.outputFinished {
            sendEnd(&state, &wakeups)
        }
    }

    private func sendEnd(_ state: inout State, _ wakeups: inout Wakeups) {
        guard !state.finSent, state.isOpen else { return }
        if state.failure == nil {
            if state.mayDeferConnect { connectNow(&state) }
            // With TLS the end is an alert, and the peer may still have much to send (RFC 8446 §6.1).
            guard sendClosingAlert(&state) else { return }
            state.finSent = true
            if state.tls == nil || state.phase == .closing { state.descriptor.shutdownOutput() }
        }
        if let rare = state.rare {
            wakeups.waiters += rare.finishWaiters
            rare.finishWaiters = []
        }
    }

    /// Sends a SYN that fast open still holds back; nothing where it is out. An error comes as an event.
    func connectNow(_ state: inout State) {
        state.mayDeferConnect = false
        _ = state.descriptor.send(UnsafeRawBufferPointer(start: nil, count: 0))
    }

    /// Ends the sending side in the middle of something: not even the sends that wait can follow it.
    func cutOff() {
        let wakeups = state.withLock { state in
            var wakeups = Wakeups()
            state.outputFinished = true
            sendEnd(&state, &wakeups)
            return wakeups
        }
        wake(wakeups)
    }

    // MARK: finish()

    /// Half-close: what was accepted goes out, then a FIN. New sends fail at once.
    func finish(timeout: Duration?) async throws {
        if Task.isCancelled { throw CancellationError() }
        let deadline = MonotonicClock.deadline(after: timeout)
        try await open(until: deadline, .send)
        let waiter = Waiter()
        let (wakeups, error, isDone) = state.withLock { state in
            var wakeups = Wakeups()
            if let failure = state.failure { return (wakeups, failure as NetworkError?, true) }
            guard state.isOpen else { return (wakeups, NetworkError.closed(.send), true) }
            state.outputFinished = true
            offerSending(&state, &wakeups)
            if !state.finSent { state.orMakeRare.finishWaiters.append(waiter) }
            return (wakeups, nil, state.finSent)
        }
        wake(wakeups)
        if let error { throw error }
        if isDone { return }
        let wake = await waiter.wait(on: loop, until: deadline)
        guard wake == .ready else { throw Self.error(for: wake) }
        if let failure = state.withLock({ $0.finSent ? nil : $0.failure ?? .closed(.send) }) {
            throw failure
        }
    }
}
