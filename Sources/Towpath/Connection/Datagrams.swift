/// The datagrams of a connection as they come, pulled one at a time.
///
/// The sequence ends once no more will come. It throws what `receive` throws; iterating again goes on
/// with the next datagram.
public struct Datagrams: AsyncSequence, Sendable {
    /// A datagram.
    public typealias Element = Datagram
    /// What iterating can throw: a ``NetworkError`` or `CancellationError`.
    public typealias Failure = any Error

    private let source: Result<ConnectionCore, NetworkError>
    /// Keeps the connection while somebody iterates.
    private let connection: any Sendable & AnyObject
    private let drain: DrainSignal?

    init<Top>(_ connection: Connection<Top>, untilDrain: Bool) {
        switch connection.core {
        case .live(let core): source = .success(core)
        case .impossible(let error): source = .failure(error)
        }
        self.connection = connection
        drain = untilDrain ? connection.listener?.drain : nil
    }

    private func take(
        _ core: ConnectionCore, _ state: inout ConnectionCore.State
    ) -> ConnectionCore.Step<Datagram?> {
        let step = core.takeDatagram(&state)
        if case .blocked = step, let drain, drain.isSignalled { return .done(nil) }
        return step
    }

    /// An iterator over the datagrams to come.
    public func makeAsyncIterator() -> Iterator { Iterator(datagrams: self) }

    /// Pulls the datagrams.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let datagrams: Datagrams

        /// The next datagram; nil once no more will come.
        public mutating func next() async throws -> Datagram? {
            let core = try datagrams.source.get()
            return try await core.receive(nil) { datagrams.take(core, &$0) }
        }

        /// The next datagram; nil once no more will come.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws -> Datagram? {
            let core = try datagrams.source.get()
            return try await core.receive(nil) { datagrams.take(core, &$0) }
        }
    }
}
