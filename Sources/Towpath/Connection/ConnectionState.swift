/// Where a connection is in its life.
public enum ConnectionState: Equatable, Sendable, CustomStringConvertible {
    /// Made, not started.
    case setup
    /// Resolving, connecting, shaking hands.
    case preparing
    /// There is no path to the other side: the connection waits until one appears, or its connection
    /// timeout is over. The error says what is missing. See ``Parameters/waitsForConnectivity(_:)``.
    case waiting(NetworkError)
    /// Bytes can be sent and received.
    case ready
    /// The connection could not be opened, or broke. This is its last state.
    case failed(NetworkError)
    /// The connection was closed on this side. This is its last state.
    case cancelled

    /// Whether no other state follows.
    public var isFinal: Bool {
        switch self {
        case .failed, .cancelled: true
        case .setup, .preparing, .waiting, .ready: false
        }
    }

    /// The state's name, with the error of a failed one.
    public var description: String {
        switch self {
        case .setup: "setup"
        case .preparing: "preparing"
        case .waiting(let error): "waiting (\(error))"
        case .ready: "ready"
        case .failed(let error): "failed (\(error))"
        case .cancelled: "cancelled"
        }
    }
}
