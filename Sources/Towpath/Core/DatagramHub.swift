internal import TowpathReactor

/// The one socket of a UDP listener: deals what arrives to its peers' connections, and makes one for
/// each new pair of remote and local address.
final class DatagramHub: EventHandler {
    private struct State: ~Copyable {
        var socket: Descriptor?
        var token: Token?
        var peers: [DatagramPeer.Key: ConnectionCore] = [:]
        /// New peers that nobody has accepted yet.
        var arrivals = Ring<ConnectionCore>()
        var acceptor: Waiter?
        /// Somebody has begun to accept.
        var isReading = false
        var isDraining = false
        /// A deadline goes on reading where the last turn's share ended.
        var isScheduled = false
        /// Connections that wait until the socket takes more.
        var writers: [ConnectionCore] = []
        var droppedCount = 0
    }

    /// How many batches are read in one turn of the loop before others go first.
    private static let batchLimit = 4

    let loop: EventLoop
    let udp: UDP
    /// Where the socket is bound.
    private let address: SocketAddress
    private let state: Locked<State>
    private let context: ListenerContext

    init(
        loop: EventLoop, udp: UDP, socket: consuming Descriptor, address: SocketAddress,
        context: ListenerContext
    ) throws(SystemError) {
        self.loop = loop
        self.udp = udp
        self.address = address
        self.context = context
        var initial = State()
        initial.socket = consume socket
        state = Locked(initial)
        try state.withLock { state throws(SystemError) in
            guard let socket = state.socket.take() else { return }
            // What arrives waits in the kernel until somebody accepts.
            state.token = try loop.register(socket, for: [], handler: self)
            state.socket = consume socket
        }
    }

    // MARK: The listener's side

    /// The next new peer; nil once the hub drains or is closed, and when the task is cancelled.
    func next() async -> ConnectionCore? {
        while !Task.isCancelled {
            let waiter = Waiter()
            let (core, isOver) = state.withLock { state -> (ConnectionCore?, Bool) in
                if !state.isReading, let token = state.token {
                    state.isReading = true
                    state.socket.modify(on: loop, token, [.input])
                }
                if let core = state.arrivals.popFirst() { return (core, false) }
                if state.isDraining || state.token == nil { return (nil, true) }
                state.acceptor = waiter
                return (nil, false)
            }
            if let core {
                if let limit = udp.idleTimeout { core.watchIdleness(limit) }
                return core
            }
            if isOver { return nil }
            _ = await waiter.wait(on: loop, until: .max)
        }
        return nil
    }

    /// No new peers from now on; those who are there go on.
    func drain() {
        let acceptor = state.withLock { state in
            state.isDraining = true
            return state.acceptor.take()
        }
        acceptor?.finish(.ready)
    }

    func close() {
        let (acceptor, peers) = state.withLock { state in
            if let socket = state.socket.take(), let token = state.token.take() {
                loop.deregister(socket, token: token)
            }
            // They hold the hub in turn.
            state.arrivals = Ring()
            state.writers = []
            return (state.acceptor.take(), Array(state.peers.values))
        }
        acceptor?.finish(.ready)
        for peer in peers { peer.abort() }
    }

    // MARK: The peers' side

    func withSocket(_ body: (borrowing Descriptor) -> Transfer) -> Transfer {
        state.withLock { state in state.socket.map { socket, _ in body(socket) } }
    }

    func wakeWhenWritable(_ core: ConnectionCore) {
        state.withLock { state in
            guard let token = state.token else { return }
            state.writers.append(core)
            // Each time anew: room that came since the send is reported again.
            state.socket.modify(on: loop, token, [.input, .output])
        }
    }

    func remove(_ peer: DatagramPeer) {
        let core = state.withLock { state -> ConnectionCore? in
            // Its successor may have the same addresses.
            guard state.peers[peer.key]?.peer === peer else { return nil }
            return state.peers.removeValue(forKey: peer.key)
        }
        withExtendedLifetime(core) {}
    }

    // MARK: Readiness

    func handle(_ events: ReadyEvents) {
        if events.isWritable {
            let writers = state.withLock { state in
                defer { state.writers = [] }
                if !state.writers.isEmpty, let token = state.token {
                    state.socket.modify(on: loop, token, [.input])
                }
                return state.writers
            }
            for writer in writers { writer.handle([.output]) }
        }
        // Where a deadline goes on, an edge adds nothing: the work of a turn would grow with each.
        if events.isReadable, state.withLock({ !$0.isScheduled }) { receive() }
    }

    func deadlineReached(_ tag: UInt8) {
        state.withLock { $0.isScheduled = false }
        receive()
    }

    private func receive() {
        let batch = DatagramBatch.current
        var dropped = 0
        var mayHaveMore = true
        for _ in 0..<Self.batchLimit where mayHaveMore {
            let result = state.withLock { state in
                state.socket.map { socket, _ in
                    batch.receive(
                        from: socket, limit: DatagramBatch.capacity,
                        maximumSize: udp.maximumReceiveSize)
                }
            }
            switch result {
            case .done(let count):
                dropped += deal(batch, count)
                mayHaveMore = count == DatagramBatch.capacity
            // An ICMP error of an earlier datagram to some peer: reading clears it, and no datagram
            // of the others is touched.
            case .failed: mayHaveMore = true
            case .wouldBlock: mayHaveMore = false
            }
        }
        if dropped > 0 { context.post(.datagramsDropped(count: dropped)) }
        guard mayHaveMore else { return }
        state.withLock { $0.isScheduled = true }
        _ = loop.schedule(at: MonotonicClock.now, self, tag: 0)
    }

    /// Returns how many datagrams found no room.
    private func deal(_ batch: DatagramBatch, _ count: Int) -> Int {
        let now = MonotonicClock.now
        var dropped = 0
        for index in 0..<count {
            let header = batch.header(index)
            guard let remote = header.remote else { continue }
            let key = DatagramPeer.Key(remote: remote, local: header.local)
            guard let core = core(for: key) else {
                dropped += 1
                continue
            }
            core.deliver(batch.content(index), header, limit: udp.queueLimit, now: now)
        }
        return dropped
    }

    private func core(for key: DatagramPeer.Key) -> ConnectionCore? {
        let (core, acceptor) = state.withLock { state -> (ConnectionCore?, Waiter?) in
            if let core = state.peers[key] { return (core, nil) }
            guard !state.isDraining, state.token != nil, state.peers.count < udp.peerLimit,
                context.live.hasRoom(beside: state.arrivals.count)
            else {
                return (nil, nil)
            }
            let core = ConnectionCore(
                loop: loop, peer: DatagramPeer(hub: self, key: key, bound: address))
            state.peers[key] = core
            state.arrivals.append(core)
            return (core, state.acceptor.take())
        }
        acceptor?.finish(.ready)
        return core
    }
}

extension Optional where Wrapped == Descriptor, Wrapped: ~Copyable {
    fileprivate borrowing func modify(
        on loop: EventLoop, _ token: Token, _ events: ReadyEvents
    ) {
        switch self {
        case .some(let socket): loop.modify(socket, token: token, for: events)
        case .none: break
        }
    }
}
