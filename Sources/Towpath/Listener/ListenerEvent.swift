/// Something that happened to a listener beside its connections' handlers: told through
/// ``Listener/onEvent(_:)``, so that nothing vanishes.
///
/// More cases may come in later versions: a `switch` over them needs a `default`.
public enum ListenerEvent: Sendable, CustomStringConvertible {
    /// A handler threw: its connection was aborted.
    case handlerFailed(any Error, remoteEndpoint: Endpoint?)
    /// TLS could not be negotiated with a client, which is gone; no handler was called.
    case handshakeFailed(NetworkError, remoteEndpoint: Endpoint?)
    /// A connection was gone before it was accepted, or could not be taken on.
    case connectionLost(NetworkError)
    /// No descriptors or memory are left for new connections. They wait; the listener tries again, at
    /// least once a second. Told once, until it is over.
    case resourcesExhausted(NetworkError)
    /// New connections are accepted again.
    case resourcesAvailable
    /// Datagrams of new peers were dropped: there are as many peers as ``UDP/peerLimit(_:)`` or
    /// ``Listener/connectionLimit(_:)`` allow, or the listener drains.
    case datagramsDropped(count: Int)
    /// A handler has kept an event loop from going on for this long; see
    /// ``Listener/reportStalls(longerThan:)``.
    case stalled(Duration)

    /// The event in words.
    public var description: String {
        switch self {
        case .handlerFailed(let error, let remote):
            "the handler of \(remote.map { "\($0)" } ?? "a connection") failed: \(error)"
        case .handshakeFailed(let error, let remote):
            "no handshake with \(remote.map { "\($0)" } ?? "a client"): \(error)"
        case .connectionLost(let error): "a connection was lost before it was accepted: \(error)"
        case .resourcesExhausted(let error): "no new connections for now: \(error)"
        case .resourcesAvailable: "new connections are accepted again"
        case .datagramsDropped(let count): "\(count) datagrams dropped: too many peers"
        case .stalled(let duration): "an event loop is stalled for \(duration)"
        }
    }
}
