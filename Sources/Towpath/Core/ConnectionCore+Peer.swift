internal import TowpathReactor

/// One peer of a UDP listener: it ends by silence.
extension ConnectionCore {
    /// A peer that was silent for the listener's idle timeout gets an end of its datagrams.
    func watchIdleness(_ limit: Duration) {
        state.withLock { state in
            state.orMakeRare.lastActivity = MonotonicClock.now
            scheduleIdleDeadline(&state, limit)
        }
    }

    func idleDeadlineReached() {
        guard let limit = peer?.hub.udp.idleTimeout else { return }
        let wakeups = state.withLock { state in
            var wakeups = Wakeups()
            guard state.phase == .ready, !state.inputEnded, let rare = state.rare else {
                return wakeups
            }
            let nanoseconds = MonotonicClock.nanoseconds(in: limit)
            guard MonotonicClock.now - rare.lastActivity >= nanoseconds else {
                scheduleIdleDeadline(&state, limit)
                return wakeups
            }
            state.inputEnded = true
            wakeups.reader = takeReader(&state)
            state.isReadable = true
            // Whatever comes after this begins a new connection.
            if let peer { peer.hub.remove(peer) }
            return wakeups
        }
        wake(wakeups)
    }

    private func scheduleIdleDeadline(_ state: inout State, _ limit: Duration) {
        let rare = state.orMakeRare
        let (deadline, overflow) = rare.lastActivity.addingReportingOverflow(
            MonotonicClock.nanoseconds(in: limit))
        rare.closeTimer = loop.schedule(
            at: overflow ? .max : deadline, self, tag: Self.idleTag)
    }
}
