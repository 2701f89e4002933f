/// Happy Eyeballs, RFC 8305: in which order and when to try the addresses of a host.
///
/// The caller reports what the resolver and the attempts give, asks ``next(now:)`` after each
/// report and at the time it was told to wait for, and does as it is told. Times count from the
/// beginning of the race. The first attempt to succeed wins; the caller closes the others.
///
///     resolving ──(an IPv6 address, or only IPv4 and its wait is over)──> racing
///     resolving, racing ──(an attempt succeeded)──> done
package struct ConnectionRace: Sendable {
    package enum Step: Equatable, Sendable {
        /// Start this attempt, and ask again at once.
        case connect(attempt: Int, to: IPAddress)
        /// Ask again after the next report, and at this time if there is one.
        case wait(until: Duration?)
        /// Every attempt failed, and no address is left or still to come.
        case exhausted
        /// An attempt succeeded.
        case done
    }

    private enum State {
        /// No attempt yet; the first one may start at this time.
        case resolving(startAt: Duration?)
        /// The next attempt may start at this time.
        case racing(nextAt: Duration)
        case done
    }

    private var state: State
    private var unresolved: Set<AddressFamily>
    private var seen: Set<IPAddress> = []
    private var untried: [IPAddress] = []
    private var running: Set<Int> = []
    private var startedCount = 0
    private var preferred = AddressFamily.ipv6  // §4: first, and from then on alternating
    private let resolutionDelay: Duration
    private let attemptDelay: Duration

    /// A race to a name of which both families are being looked up.
    ///
    /// - Parameters:
    ///   - resolutionDelay: How long IPv4 addresses wait for IPv6 ones. §3 recommends 50 ms: about
    ///     what two answers to questions asked together differ by.
    ///   - attemptDelay: How long after an attempt the next one starts beside it. §5 recommends
    ///     250 ms: most handshakes are done by then, and few users notice.
    package init(
        resolutionDelay: Duration = .milliseconds(50), attemptDelay: Duration = .milliseconds(250)
    ) {
        state = .resolving(startAt: nil)
        unresolved = [.ipv4, .ipv6]
        self.resolutionDelay = resolutionDelay
        self.attemptDelay = attemptDelay
    }

    /// A race to addresses that are known.
    package init(addresses: [IPAddress], attemptDelay: Duration = .milliseconds(250)) {
        state = .racing(nextAt: .zero)
        unresolved = []
        resolutionDelay = .zero
        self.attemptDelay = attemptDelay
        add(addresses)
    }

    /// The lookup of one family is over; without addresses, it failed or there are none.
    package mutating func resolved(
        _ family: AddressFamily, _ addresses: [IPAddress], now: Duration
    ) {
        unresolved.remove(family)
        add(addresses)
        switch state {
        case .resolving:
            guard !untried.isEmpty else { return }
            // Nothing is untried before the first answer, so this is set once or brought forward.
            let waits = unresolved.contains(.ipv6)
            state = .resolving(startAt: waits ? now + resolutionDelay : now)
        case .racing, .done: return
        }
    }

    /// An attempt failed; the next one need not wait.
    ///
    /// Ignored if the attempt is not running.
    package mutating func failed(_ attempt: Int, now: Duration) {
        guard running.remove(attempt) != nil else { return }
        switch state {
        case .resolving, .done: return
        case .racing: state = .racing(nextAt: now)
        }
    }

    /// An attempt succeeded.
    ///
    /// Ignored if the attempt is not running.
    package mutating func succeeded(_ attempt: Int) {
        guard running.remove(attempt) != nil else { return }
        state = .done
    }

    /// What to do now.
    package mutating func next(now: Duration) -> Step {
        switch state {
        case .resolving(let startAt?) where now >= startAt:
            state = .racing(nextAt: now)
            return next(now: now)
        case .resolving(let startAt):
            return unresolved.isEmpty ? .exhausted : .wait(until: startAt)
        case .racing(let nextAt):
            guard let index = nextIndex() else {
                return unresolved.isEmpty && running.isEmpty ? .exhausted : .wait(until: nil)
            }
            guard now >= nextAt else { return .wait(until: nextAt) }
            return start(untried.remove(at: index), now: now)
        case .done:
            return .done
        }
    }

    private mutating func start(_ address: IPAddress, now: Duration) -> Step {
        let attempt = startedCount
        startedCount += 1
        running.insert(attempt)
        preferred = address.family == .ipv6 ? .ipv4 : .ipv6
        state = .racing(nextAt: now + attemptDelay)
        return .connect(attempt: attempt, to: address)
    }

    private func nextIndex() -> Int? {
        untried.firstIndex { $0.family == preferred } ?? untried.indices.first
    }

    /// An address that was tried under another name is not tried again.
    private mutating func add(_ addresses: [IPAddress]) {
        for address in addresses.map(\.normalized) where seen.insert(address).inserted {
            untried.append(address)
        }
    }
}
