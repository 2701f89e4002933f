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

    private enum Step: ~Copyable {
        case accepted(Descriptor, SocketAddress)
        case blocked
        case spent
        case lost(Int32)
        case exhausted(Int32, nanoseconds: UInt64, isNew: Bool)
        case failed(Int32)
        case over
    }

    /// Doubling from 50 ms to 1 s: soon enough for a person, rare enough to be idle.
    private static let backOffs = UInt64(50_000_000)...1_000_000_000

    let loop: EventLoop
    private let kind: TransportKind
    private let context: ListenerContext
    private let accept: Accept
    private let state: Locked<State>

    init(
        loop: EventLoop, kind: TransportKind, socket: consuming Descriptor,
        context: ListenerContext,
        accept: @escaping Accept
    ) throws(SystemError) {
        self.loop = loop
        self.kind = kind
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
            case .accepted(let socket, let address):
                if let core = makeCore(socket, address) { return core }
            case .blocked: await park(until: nil)
            case .spent: await loop.nextTurn()
            case .lost(let code):
                context.post(
                    .connectionLost(NetworkError(SystemError(code, "accept4"), .listen, "gone")))
            case .exhausted(let code, let nanoseconds, let isNew):
                if isNew {
                    let error = SystemError(code, "accept4")
                    context.post(.resourcesExhausted(NetworkError(error, .listen, "cannot accept")))
                }
                await park(until: MonotonicClock.now + nanoseconds)
            case .failed(let code):
                throw NetworkError(SystemError(code, "accept4"), .listen, "cannot accept any more")
            case .over: return nil
            }
        }
        return nil
    }

    private func step() -> Step {
        state.withLock { state in
            guard state.token != nil else { return .over }
            guard state.isReadable else { return state.isDraining ? .over : .blocked }
            if state.budget.isSpent(on: loop) { return .spent }
            state.budget.spend(0)
            switch state.socket.accept(accept) {
            case .connection(let socket, let address):
                return .accepted(socket, address)
            case .none:
                state.isReadable = false
                return state.isDraining ? .over : .blocked
            case .passing(let code): return .lost(code)
            case .failed(let code): return .failed(code)
            case .exhausted(let code):
                // A drain cannot wait for descriptors that may never come.
                if state.isDraining { return .over }
                let isNew = state.backOff == nil
                let nanoseconds = state.backOff ?? Self.backOffs.lowerBound
                state.backOff = min(nanoseconds * 2, Self.backOffs.upperBound)
                return .exhausted(code, nanoseconds: nanoseconds, isNew: isNew)
            }
        }
    }

    private func makeCore(
        _ socket: consuming Descriptor, _ address: SocketAddress
    ) -> ConnectionCore? {
        let isRecovery = state.withLock { $0.backOff.take() != nil }
        if isRecovery { context.post(.resourcesAvailable) }
        do throws(SystemError) {
            return try ConnectionCore(
                loop: try EventLoopGroup.shared.next(), kind: kind, descriptor: socket,
                remote: address.compact)
        } catch {
            context.post(.connectionLost(NetworkError(error, .listen, "cannot be watched")))
            return nil
        }
    }

    private func park(until deadline: UInt64?) async {
        let waiter = Waiter()
        let mustWait = state.withLock { state in
            let isBackingOff = deadline != nil
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
