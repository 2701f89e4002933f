internal import TowpathReactor
public import TowpathWire

/// Messages in and out. One receive at a time; sends go out whole, in the order of the calls.
///
/// Pings are answered, and closes seen, also while nobody receives; but not while a message lies unread,
/// since then nothing is read.
extension Connection where Top == WebSocket {
    // MARK: What was agreed on

    /// The subprotocol, if one was chosen; nil before the connection is ready.
    public var subprotocol: String? { layer { $0.agreement.subprotocol } ?? nil }

    /// Whether messages may be compressed.
    public var isCompressing: Bool { layer { $0.agreement.deflate != nil } ?? false }

    /// What the client asked for, on a listener's connection.
    public var request: WebSocketRequest? { layer { $0.request } ?? nil }

    /// Why the peer closed: its Close frame's code and reason, or 1006 if it left without one; nil while
    /// it has not.
    public var closeStatus: WebSocketCloseStatus? { layer { $0.closeStatus } ?? nil }

    private func layer<Value>(_ read: (WebSocketLayer) -> Value) -> Value? {
        guard case .live(let core) = core else { return nil }
        return core.state.withLock { $0.webSocket.map(read) }
    }

    // MARK: Receiving

    /// Waits for the next message.
    ///
    /// Throws ``NetworkError/Code/closedByPeer`` once the peer closed, for whichever reason, with the code
    /// and reason as its cause; ``NetworkError/Code/protocolViolation`` or
    /// ``NetworkError/Code/messageTooLong`` if it broke the rules, which it is told. Nothing can be received
    /// after either.
    public func receive(timeout: Duration? = nil) async throws -> WebSocketMessage {
        let core = try liveCore()
        return try await core.receive(timeout) { core.takeMessage(&$0) }
    }

    /// The messages as they come, pulled one at a time.
    ///
    /// Ends when the peer closes with 1000, 1001 or no code, and throws otherwise what
    /// ``receive(timeout:)->WebSocketMessage`` does.
    public var messages: WebSocketMessages {
        WebSocketMessages(self, idleTimeout: nil, untilDrain: false)
    }

    /// The messages as they come.
    ///
    /// - Parameters:
    ///   - idleTimeout: How long to wait for each; after that ``NetworkError/Code/timedOut``.
    ///   - untilDrain: Whether the sequence ends once the listener that accepted the connection drains and
    ///     no message is waiting.
    public func messages(
        idleTimeout: Duration? = nil, untilDrain: Bool = false
    ) -> WebSocketMessages {
        WebSocketMessages(self, idleTimeout: idleTimeout, untilDrain: untilDrain)
    }

    // MARK: Sending

    /// Sends a message; returns when the kernel has taken it.
    ///
    /// A message of which nothing has gone is withdrawn when its caller stops waiting, unless it is
    /// compressed: later ones refer to it. Throws ``NetworkError/Code/closed`` after ``close(code:reason:)``,
    /// and what ended the connection, such as ``NetworkError/Code/closedByPeer``.
    public func send(_ message: WebSocketMessage, timeout: Duration? = nil) async throws {
        switch message {
        case .text(var text):
            let begun = try text.withUTF8 {
                try begin(.text, UnsafeRawBufferPointer($0), timeout)
            }
            try await goOn(begun, .text, timeout) { Array(text.utf8) }
        case .binary(let bytes):
            let begun = try bytes.withUnsafeBytes { try begin(.binary, $0, timeout) }
            try await goOn(begun, .binary, timeout) { bytes }
        }
    }

    private func begin(
        _ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer, _ timeout: Duration?
    ) throws -> ConnectionCore.BegunSend {
        try liveCore().sendMessageAtOnce(opcode, payload)
    }

    private func goOn(
        _ begun: ConnectionCore.BegunSend, _ opcode: WebSocketOpcode, _ timeout: Duration?,
        _ payload: () -> [UInt8]
    ) async throws {
        switch begun {
        case .done: return
        case .rest(let frames):
            try await liveCore().finishSending(
                frames, until: MonotonicClock.deadline(after: timeout))
        case .notNow: try await liveCore().sendMessage(opcode, payload(), timeout: timeout)
        }
    }

    /// Sends a message in fragments, as they are made; other sends wait until it is whole.
    ///
    /// If `body` throws, the message cannot be finished: the connection is aborted. Fragments are not
    /// compressed, and those of a text need not end where characters do.
    public func sendFragments(
        of kind: WebSocketMessageKind, timeout: Duration? = nil,
        _ body: (WebSocketFragments) async throws -> Void
    ) async throws {
        let core = try liveCore()
        let deadline = MonotonicClock.deadline(after: timeout)
        try await core.takeRightToSend(until: deadline)
        let fragments = WebSocketFragments(core, kind, deadline)
        do {
            try await body(fragments)
            try await fragments.finish()
        } catch {
            fragments.abandon()
            throw error
        }
    }

    /// Sends a ping and waits for its pong (RFC 6455 §5.5.2); returns how long that took.
    ///
    /// Somebody has to take messages meanwhile, or there have to be none: a pong lies behind those sent
    /// before it.
    @discardableResult
    public func ping(timeout: Duration? = .seconds(10)) async throws -> Duration {
        try await liveCore().ping(timeout: timeout)
    }

    // MARK: The end

    /// Closes with a code and a reason (RFC 6455 §7): sends what was accepted and a Close frame, waits for
    /// the peer's, at most ``WebSocket/closeTimeout(_:)``, and ends the stream below.
    ///
    /// ``close()`` is this with 1000. Messages that come meanwhile are discarded. Throws
    /// ``NetworkError/Code/optionFailed``, and does nothing, if the code may not be sent
    /// (``WebSocketCloseCode/isSendable``) or the reason has more than 123 bytes.
    public func close(code: WebSocketCloseCode, reason: String = "") async throws(NetworkError) {
        guard code.isSendable, reason.utf8.count <= 123 else {
            throw NetworkError(
                .optionFailed, .close,
                code.isSendable
                    ? "a reason has at most 123 bytes, not \(reason.utf8.count)"
                    : "the code \(code) may not be sent: 1000 to 1003, 1007 to 1014 and 3000 to 4999 may"
            )
        }
        let core = try liveCore()
        await core.closeWebSocket(WebSocketCloseStatus(code, reason))
        await core.close()
    }
}

/// The kinds of messages.
public enum WebSocketMessageKind: Sendable {
    /// Text.
    case text
    /// Bytes.
    case binary
}

/// A message that is being sent in fragments.
///
/// Not for use by several tasks at a time.
public final class WebSocketFragments {
    private let core: ConnectionCore
    private let kind: WebSocketMessageKind
    private let deadline: UInt64
    private var hasBegun = false
    /// The right to send was given back.
    private var hasEnded = false

    init(_ core: ConnectionCore, _ kind: WebSocketMessageKind, _ deadline: UInt64) {
        self.core = core
        self.kind = kind
        self.deadline = deadline
    }

    /// Sends the next fragment; returns when the kernel has taken it.
    public func send(_ bytes: [UInt8]) async throws {
        try await send(bytes, isFinal: false)
    }

    /// Sends the next fragment of a text.
    public func send(_ text: String) async throws {
        try await send(Array(text.utf8), isFinal: false)
    }

    func finish() async throws { try await send([], isFinal: true) }

    private func send(_ bytes: [UInt8], isFinal: Bool) async throws {
        guard !hasEnded else { throw NetworkError.closed(.send) }
        let opcode: WebSocketOpcode =
            hasBegun ? .continuation : kind == .text ? .text : .binary
        hasBegun = true
        // Whether it succeeds or throws, the right is given back behind the last one.
        hasEnded = isFinal
        do {
            try await core.sendFrame(
                opcode, bytes, isFinal: isFinal, until: deadline, mayCompress: false)
        } catch {
            hasEnded = true
            throw error
        }
    }

    /// The message stays a part of one: nothing can follow it.
    func abandon() {
        if !hasEnded { core.endSending() }
        hasEnded = true
        if hasBegun { core.abort() }
    }
}

/// The messages of a WebSocket as they come, pulled one at a time: what nobody asks for stays in the
/// kernel, and the peer is slowed down.
public struct WebSocketMessages: AsyncSequence, Sendable {
    /// A message.
    public typealias Element = WebSocketMessage
    /// What iterating can throw: a ``NetworkError`` or `CancellationError`.
    public typealias Failure = any Error

    private let source: Result<ConnectionCore, NetworkError>
    /// Keeps the connection while somebody iterates.
    private let connection: any Sendable & AnyObject

    private let idleTimeout: Duration?
    private let drain: DrainSignal?

    init(_ connection: Connection<WebSocket>, idleTimeout: Duration?, untilDrain: Bool) {
        switch connection.core {
        case .live(let core): source = .success(core)
        case .impossible(let error): source = .failure(error)
        }
        self.connection = connection
        self.idleTimeout = idleTimeout
        drain = untilDrain ? connection.listener?.drain : nil
    }

    private func take(
        _ core: ConnectionCore, _ state: inout ConnectionCore.State
    ) -> ConnectionCore.Step<WebSocketMessage?> {
        let step = core.takeMessageOrEnd(&state)
        if case .blocked = step, let drain, drain.isSignalled { return .done(nil) }
        return step
    }

    /// An iterator over the messages to come.
    public func makeAsyncIterator() -> Iterator { Iterator(messages: self) }

    /// Pulls the messages.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let messages: WebSocketMessages

        /// The next message; nil once the peer closed in good order.
        public mutating func next() async throws -> WebSocketMessage? {
            let core = try messages.source.get()
            return try await core.receive(messages.idleTimeout) { messages.take(core, &$0) }
        }

        /// The next message; nil once the peer closed in good order.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws -> WebSocketMessage? {
            let core = try messages.source.get()
            return try await core.receive(messages.idleTimeout) { messages.take(core, &$0) }
        }
    }
}
