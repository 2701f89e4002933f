internal import TowpathReactor

/// Messages of a framing in and out: of a ``TLV``, a ``Coder`` or a ``Framer``. One receive at a time; sends
/// go out whole, in the order of the calls.
extension Connection where Top: FramedProtocol {
    /// Waits for the next message; nil once the peer has ended, between messages.
    ///
    /// A receive that stops waiting, by cancellation or `timeout`, has taken nothing. Throws what the framer
    /// throws, ``NetworkError/Code/messageTooLong`` above the limit, ``NetworkError/Code/endOfStream`` if the
    /// stream ends within a message, and what ends the connection.
    public func receive(timeout: Duration? = nil) async throws -> Top.Framing.Receiving? {
        try await layer().receive(liveCore(), timeout: timeout, drain: nil)
    }

    /// The messages as they come, pulled one at a time, until the peer ends.
    public var messages: FramedMessages<Top> {
        FramedMessages(self, idleTimeout: nil, untilDrain: false)
    }

    /// The messages as they come.
    ///
    /// - Parameters:
    ///   - idleTimeout: How long to wait for each; after that ``NetworkError/Code/timedOut``.
    ///   - untilDrain: Whether the sequence ends once the listener that accepted the connection drains and
    ///     no message has begun.
    public func messages(
        idleTimeout: Duration? = nil, untilDrain: Bool = false
    ) -> FramedMessages<Top> {
        FramedMessages(self, idleTimeout: idleTimeout, untilDrain: untilDrain)
    }

    /// Sends a message; returns when the kernel has taken it.
    ///
    /// Once the framer has encoded it, it goes, whole, also if the caller stops waiting. Throws what the
    /// framer throws, having sent nothing, and what ended the connection.
    public func send(_ message: Top.Framing.Sending, timeout: Duration? = nil) async throws {
        try await layer().send(liveCore(), message, timeout: timeout)
    }

    fileprivate func layer() throws(NetworkError) -> FramingLayer<Top.Framing> {
        guard let layer = framing as? FramingLayer<Top.Framing> else {
            throw NetworkError(.notSupported, .setup, "this connection has no framing")
        }
        return layer
    }
}

/// The messages of a framing as they come, pulled one at a time: what nobody asks for stays in the kernel,
/// and the peer is slowed down.
public struct FramedMessages<Top: FramedProtocol>: AsyncSequence, Sendable {
    /// A message.
    public typealias Element = Top.Framing.Receiving
    /// What iterating can throw: the framer's errors, a ``NetworkError`` or `CancellationError`.
    public typealias Failure = any Error

    private let connection: Connection<Top>
    private let idleTimeout: Duration?
    private let drain: DrainSignal?

    init(_ connection: Connection<Top>, idleTimeout: Duration?, untilDrain: Bool) {
        self.connection = connection
        self.idleTimeout = idleTimeout
        drain = untilDrain ? connection.listener?.drain : nil
    }

    /// An iterator over the messages to come.
    public func makeAsyncIterator() -> Iterator { Iterator(messages: self) }

    /// Pulls the messages.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let messages: FramedMessages

        /// The next message; nil once the peer has ended.
        public mutating func next() async throws -> Element? { try await messages.next() }

        /// The next message; nil once the peer has ended.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
            try await messages.next()
        }
    }

    private func next() async throws -> Element? {
        try await connection.layer().receive(
            connection.liveCore(), timeout: idleTimeout, drain: drain)
    }
}
