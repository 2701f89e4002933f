internal import TowpathReactor
internal import TowpathWire

/// What a connection has for its WebSocket. All of it lies behind the connection's lock.
final class WebSocketLayer {
    struct PingWaiter {
        let number: UInt64
        let waiter: Waiter
    }

    let options: WebSocketOptions
    let agreement: WebSocketHandshake.Agreement
    /// What a client asked this server for.
    let request: WebSocketRequest?
    private let isClient: Bool

    // The hot ones of these need no check for exclusivity behind the lock.
    @exclusivity(unchecked) var session: WebSocketSession
    /// A message for the one who receives now.
    @exclusivity(unchecked) private var arrived: WebSocketMessage?
    /// Messages that came together with an earlier one.
    @exclusivity(unchecked) private var messages = Ring<WebSocketMessage>()
    @exclusivity(unchecked) private var hasQueue = false
    @exclusivity(unchecked) var unreadByteCount = 0
    /// How it ends behind the unread messages, which can still be answered.
    @exclusivity(unchecked) var unreadEnd: Result<WebSocketCloseStatus, WebSocketError>?
    /// The error that ends all receives and sends.
    @exclusivity(unchecked) var end: NetworkError?
    /// What the peer's Close frame says; 1006 if it left without one.
    var closeStatus: WebSocketCloseStatus?
    /// `close` was called: messages that still come are for nobody.
    @exclusivity(unchecked) var isClosing = false
    /// A Close frame was sent, or is among what is to be sent: no other frame follows it.
    @exclusivity(unchecked) var hasClosed = false

    // Control frames that wait for the end of the frame that is being sent.
    @exclusivity(unchecked) private var pongs: [[UInt8]] = []
    @exclusivity(unchecked) private var pings: [[UInt8]] = []
    @exclusivity(unchecked) private var close: WebSocketCloseStatus?

    var pingWaiters: [PingWaiter] = []
    var closeWaiters: [Waiter] = []
    /// Whom to wake once the lock is released.
    @exclusivity(unchecked) private var wakeups: ConnectionCore.Wakeups?

    /// The last read filled its buffer: what is behind it makes no event of its own.
    @exclusivity(unchecked) var mayHaveMore = false
    var willPump = false

    // Keep-alive.
    @exclusivity(unchecked) var hasHeard = true
    var missedPongCount = 0
    var timer: TimerID?

    private var pingNumber: UInt64 = 0
    @exclusivity(unchecked) private var random: UInt64 = 0
    @exclusivity(unchecked) private var hasRandom = false

    init(
        _ role: WebSocketSession.Role, _ options: WebSocketOptions,
        _ agreement: WebSocketHandshake.Agreement, request: WebSocketRequest? = nil
    ) {
        self.options = options
        self.agreement = agreement
        self.request = request
        isClient = role == .client
        session = WebSocketSession(
            role, limits: options.limits, deflate: agreement.deflate,
            compression: options.compression.configuration ?? .init())
    }

    /// The next message that lies here.
    func takeMessage() -> WebSocketMessage? {
        guard arrived != nil || !messages.isEmpty else { return nil }
        guard let message = arrived.take() ?? messages.popFirst() else { return nil }
        unreadByteCount -= message.byteCount
        // An idle connection keeps no queue.
        if hasQueue, messages.isEmpty {
            messages = Ring()
            hasQueue = false
        }
        return message
    }

    /// Keeps a message until somebody takes it.
    func keep(_ message: WebSocketMessage) {
        unreadByteCount += message.byteCount
        if arrived == nil, messages.isEmpty {
            arrived = message
        } else {
            hasQueue = true
            messages.append(message)
        }
    }

    var hasMessage: Bool { arrived != nil || !messages.isEmpty }

    func dropMessages() {
        arrived = nil
        messages = Ring()
        hasQueue = false
        unreadByteCount = 0
    }

    // MARK: Frames to send

    /// A new one for each frame of a client (RFC 6455 §5.3); nil for a server.
    var maskKey: UInt32? {
        guard isClient else { return nil }
        if hasRandom {
            hasRandom = false
            return UInt32(truncatingIfNeeded: random >> 32)
        }
        random = UInt64.random(in: .min ... .max)
        hasRandom = true
        return UInt32(truncatingIfNeeded: random)
    }

    var isServer: Bool { !isClient }

    /// Where many wait, the newest are the ones to answer (RFC 6455 §5.5.3): a peer that sends pings and
    /// does not read costs no more than this.
    private static let pongLimit = 32

    func answer(_ ping: [UInt8]) {
        guard options.answersPings, !hasClosed else { return }
        if pongs.count == Self.pongLimit { pongs.removeFirst() }
        pongs.append(ping)
    }

    /// The number of a new ping, which is its payload.
    @discardableResult
    func sendPing() -> UInt64 {
        pingNumber += 1
        pings.append(withUnsafeBytes(of: pingNumber.bigEndian) { [UInt8]($0) })
        return pingNumber
    }

    func sendClose(_ status: WebSocketCloseStatus) {
        guard !hasClosed else { return }
        hasClosed = true
        close = status
    }

    var hasControl: Bool { !pongs.isEmpty || !pings.isEmpty || close != nil }

    /// The control frames that wait, in the order in which they go.
    func takeControl() -> [UInt8] {
        var bytes: [UInt8] = []
        for pong in pongs { bytes += WebSocketSession.control(.pong, pong, maskKey: maskKey) }
        for ping in pings { bytes += WebSocketSession.control(.ping, ping, maskKey: maskKey) }
        if let close { bytes += WebSocketSession.control(.close, close.payload, maskKey: maskKey) }
        pongs = []
        pings = []
        close = nil
        return bytes
    }

    // MARK: Whom to wake

    func wake(_ waiters: [Waiter]) {
        if !waiters.isEmpty { wakeups = wakeups ?? .init() }
        wakeups?.waiters += waiters
    }

    func merge(_ new: ConnectionCore.Wakeups) {
        var all = wakeups ?? .init()
        all.reader = new.reader ?? all.reader
        all.writer = new.writer ?? all.writer
        all.sender = new.sender ?? all.sender
        all.waiters += new.waiters
        all.broadcast = new.broadcast ?? all.broadcast
        wakeups = all
    }

    func takeWakeups() -> ConnectionCore.Wakeups? { wakeups.take() }

    /// A pong answers its ping and those before it, to which the peer may not have answered.
    func finishPings(_ payload: [UInt8]) {
        guard payload.count == 8 else { return }
        let number = payload.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard number <= pingNumber else { return }
        let count = pingWaiters.prefix { $0.number <= number }.count
        wake(pingWaiters.prefix(count).map(\.waiter))
        pingWaiters.removeFirst(count)
    }

    /// Nobody waits for a peer that has left.
    func finishAll() {
        wake(pingWaiters.map(\.waiter) + closeWaiters)
        pingWaiters = []
        closeWaiters = []
    }

    /// The connection ends: only what is known of it stays.
    func release() {
        finishAll()
        dropMessages()
        session = WebSocketSession(isClient ? .client : .server)
    }
}
