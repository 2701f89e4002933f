/// The bytes of a connection as they come, pulled one chunk at a time: what nobody asks for stays in
/// the kernel, and the peer is slowed down.
///
/// The sequence ends with the stream. It throws what `receive` throws; iterating again goes on where
/// the last iteration stopped.
public struct ByteChunks: AsyncSequence, Sendable {
    /// A chunk.
    public typealias Element = [UInt8]
    /// What iterating can throw: a ``NetworkError`` or `CancellationError`.
    public typealias Failure = any Error

    private let source: Result<ConnectionCore, NetworkError>
    /// Keeps the connection while somebody iterates.
    private let connection: any Sendable & AnyObject
    private let maximum: Int
    private let idleTimeout: Duration?
    private let drain: DrainSignal?

    init<Top>(
        _ connection: Connection<Top>, atMost maximum: Int, idleTimeout: Duration?, untilDrain: Bool
    ) {
        switch connection.core {
        case .live(let core): source = .success(core)
        case .impossible(let error): source = .failure(error)
        }
        self.connection = connection
        self.maximum = maximum < 1 ? 1 : maximum
        self.idleTimeout = idleTimeout
        drain = untilDrain ? connection.listener?.drain : nil
    }

    private func take(
        _ core: ConnectionCore, _ state: inout ConnectionCore.State
    ) -> ConnectionCore.Step<[UInt8]?> {
        let step = core.take(&state, atMost: maximum)
        if case .blocked = step, let drain, drain.isSignalled { return .done(nil) }
        return step
    }

    /// An iterator over the chunks to come.
    public func makeAsyncIterator() -> Iterator { Iterator(chunks: self) }

    /// Pulls the chunks.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let chunks: ByteChunks

        /// The next chunk; nil at the end of the stream.
        public mutating func next() async throws -> [UInt8]? {
            let core = try chunks.source.get()
            return try await core.receive(chunks.idleTimeout) { chunks.take(core, &$0) }
        }

        /// The next chunk; nil at the end of the stream.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws -> [UInt8]? {
            let core = try chunks.source.get()
            return try await core.receive(chunks.idleTimeout) { chunks.take(core, &$0) }
        }
    }
}
