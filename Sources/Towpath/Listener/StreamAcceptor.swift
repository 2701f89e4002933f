internal import TowpathReactor

/// The listening socket of a stream listener: accepts one connection after the other, survives every
/// passing fault, and deals the connections to the loops.
final class StreamAcceptor: EventHandler {
    /// How accept(2) is called: tests put faults in between.
    typealias Accept = @Sendable (borrowing Descriptor) -> Accepted

    private struct State: ~Copyable {
        var socket: Descriptor?
        var token: Token?
        var isReadable = true
        var isDraining = false
        var waiter: Waiter?
        var budget = TurnBudget()
        /// The time to wait before the next try, while descriptors are exhausted.
        var backOff: UInt64?
    }

    private enum Attempt: ~Copyable {
        case made(Accepted)
        case notMade(Step)
    }

    private enum Step {
        case accepted(ConnectionCore)
        case again
        case blocked
        case spent
        /// This one was lost; the next may be well.
        case lost(NetworkError)
        /// Wait for descriptors until this time.
        case exhausted(until: UInt64)
        case failed(NetworkError)
        case over
    }

    /// Doubling from 50 ms to 1 s: soon enough for a person, rare enough to be idle.
    private static let backOffs = UInt64(50_000_000)...1_000_000_000

    let loop: EventLoop
    private let kind: TransportKind
    private let setup: SocketSetup
    private let context: ListenerContext
    private let accept: Accept
    private let rotation = EventLoopRotation()
    private let state: Locked<State>

    init(
        loop: EventLoop, kind: TransportKind, socket: consuming Descriptor, setup: SocketSetup,
        context: ListenerContext, accept: @escaping Accept
    ) throws(SystemError) {
        self.loop = loop
        self.kind = kind
        self.setup = setup
        self.context = context
        self.accept = accept
        var initial = State()
        initial.socket = consume socket
        state = Locked(initial)
        try state.withLock { state throws(SystemError) in
            guard let socket = state.socket.take() else { return }
            state.token = try loop.register(socket, for: [.input], handler: self)
            state.socket = consume socket
        }
    }

    /// The next connection; nil once the acceptor has drained or was closed, and when the task is
    /// cancelled.
    func next() async throws(NetworkError) -> ConnectionCore? {
        while !Task.isCancelled {
            switch step() {
            case .accepted(let core): return core
            case .again: break
            case .blocked: await park(until: .max)
            case .spent: await loop.nextTurn()
            case .lost(let error): context.post(.connectionLost(error))
            case .exhausted(let deadline): await park(until: deadline)
            case .failed(let error): throw error
            case .over: return nil
            }
        }
        return nil
    }

    private func step() -> Step {
        let attempt = state.withLock { state -> Attempt in
            guard state.token != nil else { return .notMade(.over) }
            guard state.isReadable else { return .notMade(state.isDraining ? .over : .blocked) }
            if state.budget.isSpent(on: loop) { return .notMade(.spent) }
            state.budget.spend(0)
            let accepted = state.socket.accept(accept)
            if accepted.isNone { state.isReadable = false }
            return .made(accepted)
        }
        switch consume attempt {
        case .notMade(let step): return step
        case .made(.connection(let socket, let address)): return makeCore(socket, address)
        case .made(.none):
            // Nobody waits any more: an exhaustion is over, however often it came and went meanwhile.
            if state.withLock({ $0.backOff.take() != nil }) { context.post(.resourcesAvailable) }
            // A drain or a new client shows at the next attempt.
            return .again
        case .made(.passing(let code)): return .lost(Self.error(code, "a client was gone"))
        case .made(.failed(let code)): return .failed(Self.error(code, "cannot accept any more"))
        case .made(.exhausted(let code)): return backOff(code)
        }
    }

    private func makeCore(_ socket: consuming Descriptor, _ address: SocketAddress) -> Step {
        state.withLock { if $0.backOff != nil { $0.backOff = Self.backOffs.lowerBound } }
        do throws(NetworkError) { try setup.applyToAccepted(socket, kind) } catch {
            return .lost(error)
        }
        do throws(SystemError) {
            let loop = rotation.next(of: try EventLoopGroup.shared.all())
            return .accepted(
                try ConnectionCore(
                    loop: loop, kind: kind, descriptor: socket, remote: address.compact))
        } catch {
            return .lost(NetworkError(error, .listen, "a connection cannot be watched"))
        }
    }

    private func backOff(_ code: Int32) -> Step {
        let (wait, isNew) = state.withLock { state -> (UInt64?, Bool) in
            // A drain cannot wait for descriptors that may never come.
            if state.isDraining { return (nil, false) }
            let isNew = state.backOff == nil
            let wait = state.backOff ?? Self.backOffs.lowerBound
            state.backOff = min(wait * 2, Self.backOffs.upperBound)
            return (wait, isNew)
        }
        if isNew { context.post(.resourcesExhausted(Self.error(code, "cannot accept"))) }
        return wait.map { .exhausted(until: MonotonicClock.now + $0) } ?? .over
    }

    private static func error(_ code: Int32, _ subject: String) -> NetworkError {
        NetworkError(SystemError(code, "accept4"), .listen, subject)
    }

    private func park(until deadline: UInt64) async {
        let waiter = Waiter()
        let mustWait = state.withLock { state in
            let isBackingOff = deadline != .max
            guard state.token != nil, isBackingOff || !state.isReadable else { return false }
            guard !state.isDraining else { return false }
            state.waiter = waiter
            return true
        }
        if mustWait { _ = await waiter.wait(on: loop, until: deadline) }
    }

    // MARK: From outside

    /// Accepts what is queued, then ends.
    func drain() {
        let waiter = state.withLock { state in
            state.isDraining = true
            state.isReadable = true
            return state.waiter.take()
        }
        waiter?.finish(.ready)
    }

    func close() {
        let waiter = state.withLock { state in
            if let socket = state.socket.take(), let token = state.token.take() {
                loop.deregister(socket, token: token)
            }
            return state.waiter.take()
        }
        waiter?.finish(.ready)
    }

    /// A connection has ended: its descriptor may be what was missing.
    func descriptorFreed() {
        let waiter = state.withLock { state in
            state.backOff == nil ? nil : state.waiter.take()
        }
        waiter?.finish(.ready)
    }

    func handle(_ events: ReadyEvents) {
        let waiter = state.withLock { state in
            state.isReadable = true
            // While descriptors are exhausted the clock decides, not the next client.
            return state.backOff == nil ? state.waiter.take() : nil
        }
        waiter?.finish(.ready)
    }

    func deadlineReached(_ tag: UInt8) {}
}

extension Optional where Wrapped == Descriptor, Wrapped: ~Copyable {
    fileprivate borrowing func accept(_ accept: StreamAcceptor.Accept) -> Accepted {
        switch self {
        case .some(let socket): accept(socket)
        case .none: .none
        }
    }
}
