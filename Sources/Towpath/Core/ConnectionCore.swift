internal import TowpathReactor
internal import TowpathTLS

/// One transport connection, stream or datagrams: what every `Connection` does its work with.
///
/// All state lies behind one lock; system calls that do not block are made while it is held. The
/// loop latches readiness in `handle` and wakes the one waiter of each direction. Not generic, so
/// that nothing hot is unspecialized in the embedder's build.
final class ConnectionCore: EventHandler {
    enum Phase: UInt8 {
        case setup, preparing
        /// The transport stands, and TLS is being negotiated.
        case securing
        /// The stream stands, and a WebSocket is asked for.
        case upgrading
        case ready
        /// Could not be opened.
        case failed
        /// `close()` is sending what is owed and waiting for the peer's end.
        case closing
        case closed
    }

    struct State: ~Copyable {
        var phase: Phase
        var isReadable = true
        var isWritable = true
        /// An end, error or mark was seen: a short read no longer means that the socket is empty.
        var distrustsShortReads: Bool
        /// EPOLLOUT is armed. Always for TCP; for Unix sockets only once somebody had to wait, since
        /// each send there raises a spurious edge.
        var isOutputArmed: Bool
        /// The last read was large.
        var readsBulk = false
        var inputEnded = false
        /// No new send is accepted, and a FIN follows the last one that was.
        var outputFinished = false
        var finSent = false
        var isReceiving = false
        /// Somebody is sending, or holds the right to send next.
        var isSending = false
        /// The SYN waits for the first send (TCP_FASTOPEN_CONNECT): whoever waits for the peer instead
        /// has to send nothing first.
        var mayDeferConnect = false
        /// UDP_SEGMENT failed once on this connection.
        var cannotSegment = false

        var budget = TurnBudget()
        var descriptor: Descriptor?
        var token: Token?
        var reader: UnsafeContinuation<Wake, Never>?
        var readTimer: TimerID?
        var writer: UnsafeContinuation<Wake, Never>?
        var writeTimer: TimerID?
        var remote: SocketAddress.Compact?
        /// The error that ended the connection.
        var failure: NetworkError?
        var input = InputBuffer()
        /// What makes the stream secure; nil for a plain one.
        var tls: TLSEngine?
        /// What makes messages of the stream; nil for one of bytes.
        var webSocket: WebSocketLayer?
        var rare: Rare?
    }

    /// What few connections have at any time. Touched only with the lock held, so that the hot ones of
    /// these need no check for exclusivity.
    final class Rare {
        /// The rest of a send whose caller stopped waiting after the kernel had taken a part of it.
        @exclusivity(unchecked) var owed: ArraySlice<UInt8> = []
        @exclusivity(unchecked) var senders: [Waiter] = []
        var readyWaiters: [Waiter] = []
        var finishWaiters: [Waiter] = []
        var closeWaiters: [Waiter] = []
        var closeTimer: TimerID?
        /// A deadline goes on with discarding.
        var isDiscarding = false
        var broadcast: StateBroadcast?
        var establishing: Task<Void, Never>?
        /// What it waits for while there is no path.
        var lack: NetworkError?
        var report: EstablishmentReport?
        /// Datagrams that arrived together with an earlier one, or were dealt to a listener's peer.
        @exclusivity(unchecked) var datagrams = Ring<Datagram>()
        var droppedDatagramCount = 0
        var path: Datagram.Path?
        /// When a datagram last came or went, of a listener's peer.
        @exclusivity(unchecked) var lastActivity: UInt64 = 0
    }

    /// Whom to wake once the lock is released.
    struct Wakeups {
        var reader: UnsafeContinuation<Wake, Never>?
        var writer: UnsafeContinuation<Wake, Never>?
        /// Who may send next.
        var sender: Waiter?
        var waiters: [Waiter] = []
        var broadcast: StateBroadcast?
        /// The opening that is no longer wanted.
        var establishing: Task<Void, Never>?
    }

    let loop: EventLoop
    let kind: TransportKind
    /// How to open the connection; nil if it was made elsewhere.
    let plan: ConnectionPlan?
    /// The socket that this peer of a UDP listener shares with the others.
    let peer: DatagramPeer?
    /// See `claim`. Written before a second task can know of the connection, then only read.
    @exclusivity(unchecked) private nonisolated(unsafe) var owner: UInt = 0
    let state: Locked<State>

    /// A client's connection, not opened yet.
    init(loop: EventLoop, kind: TransportKind, plan: ConnectionPlan) {
        self.loop = loop
        self.kind = kind
        self.plan = plan
        peer = nil
        state = Locked(State(phase: .setup, kind: kind))
    }

    /// A peer of a UDP listener.
    init(loop: EventLoop, peer: DatagramPeer) {
        self.loop = loop
        kind = .peer
        plan = nil
        self.peer = peer
        state = Locked(State(phase: .ready, kind: .peer))
    }

    /// A connection that stands: accepted, adopted or one of a pair.
    init(
        loop: EventLoop, kind: TransportKind, descriptor: consuming Descriptor,
        remote: SocketAddress.Compact?
    ) throws(SystemError) {
        self.loop = loop
        self.kind = kind
        plan = nil
        peer = nil
        var initial = State(phase: .ready, kind: kind)
        initial.descriptor = consume descriptor
        initial.remote = remote
        state = Locked(initial)
        try state.withLock { state throws(SystemError) in try register(&state) }
    }

    /// Hands the descriptor to the loop.
    func register(_ state: inout State) throws(SystemError) {
        state.token = try state.descriptor?.register(on: loop, state.events, self)
    }

    // MARK: Readiness, on the loop's thread

    func handle(_ events: ReadyEvents) {
        var reader: UnsafeContinuation<Wake, Never>?
        var writer: UnsafeContinuation<Wake, Never>?
        let (isPlain, wakeups) = state.withLock { state -> (Bool, Wakeups?) in
            if events.marksInput { state.distrustsShortReads = true }
            if events.isReadable {
                state.isReadable = true
                reader = takeReader(&state)
            }
            if events.isWritable {
                state.isWritable = true
                writer = takeWriter(&state)
            }
            // Nobody may be receiving who would see what the peer has to say.
            if let layer = state.webSocket {
                if events.isReadable, pump(&state, layer) { writer = takeWriter(&state) ?? writer }
                return (state.rare == nil, layer.takeWakeups())
            }
            if state.tls != nil { readAhead(&state, &writer) }
            return (state.rare == nil, nil)
        }
        reader?.resume(returning: .ready)
        writer?.resume(returning: .ready)
        if let wakeups { wake(wakeups) }
        if !isPlain { handleRare() }
    }

    /// Sends what is owed and goes on with closing.
    private func handleRare() {
        let (wakeups, isClosing) = state.withLock { state in
            var wakeups = Wakeups()
            flushOwed(&state, &wakeups)
            wakeups.broadcast = state.rare?.broadcast
            return (wakeups, state.phase == .closing)
        }
        wake(wakeups)
        if isClosing { continueClosing() }
    }

    func deadlineReached(_ tag: UInt8) {
        switch tag {
        // A timer that fired just before it was cancelled must not end the next call: that one's own is
        // still to come.
        case Self.readTag:
            state.withLock { state in
                hasFired(state.readTimer) ? takeReader(&state) : nil
            }?.resume(returning: .timedOut)
        case Self.writeTag:
            state.withLock { state in
                hasFired(state.writeTimer) ? takeWriter(&state) : nil
            }?.resume(returning: .timedOut)
        case Self.discardTag:
            state.withLock { $0.rare?.isDiscarding = false }
            continueClosing()
        case Self.idleTag:
            idleDeadlineReached()
        case Self.pumpTag:
            pumpOn()
        case Self.keepAliveTag:
            keepAliveDeadlineReached()
        default:
            closeLimitReached()
        }
    }

    private func hasFired(_ timer: TimerID?) -> Bool {
        timer.map { !loop.isScheduled($0) } ?? false
    }

    func wake(_ wakeups: Wakeups) {
        wakeups.reader?.resume(returning: .ready)
        wakeups.writer?.resume(returning: .ready)
        if let sender = wakeups.sender { passSending(to: sender) }
        for waiter in wakeups.waiters { waiter.finish(.ready) }
        wakeups.establishing?.cancel()
        wakeups.broadcast?.deliver()
    }

    // MARK: The owner

    /// The current task, as a number to compare.
    private static var currentTask: UInt {
        withUnsafeCurrentTask { unsafeBitCast($0, to: UInt.self) }
    }

    /// Makes the current task the owner, which the listener wakes with `wakeReader` when it is
    /// cancelled: its receives park without a cancellation handler of their own, which is a quarter of
    /// the cost of a wait. To be called once, before a second task knows the connection.
    func claim() { owner = Self.currentTask }

    var isOwnedByCurrentTask: Bool { owner != 0 && owner == Self.currentTask }

    /// Lets a parked receive look again: its task was cancelled, or the listener drains.
    func wakeReader() {
        let reader = state.withLock { state in
            // For one that has looked and is about to park.
            state.isReadable = true
            return takeReader(&state)
        }
        reader?.resume(returning: .ready)
    }

    // MARK: The end

    /// Notes the error that ended the connection; what was received before it can still be read.
    func fail(_ state: inout State, _ error: NetworkError) {
        guard state.failure == nil, state.phase != .closed else { return }
        state.failure = error
        state.rare?.broadcast?.post(.failed(error))
    }

    static let readTag: UInt8 = 0
    static let writeTag: UInt8 = 1
    static let discardTag: UInt8 = 2
    static let closeTag: UInt8 = 3
    static let idleTag: UInt8 = 4
    static let pumpTag: UInt8 = 5
    static let keepAliveTag: UInt8 = 6
}

extension Descriptor {
    fileprivate func register(
        on loop: EventLoop, _ events: ReadyEvents, _ handler: any EventHandler
    ) throws(SystemError) -> Token {
        try loop.register(self, for: events, handler: handler)
    }
}
