public import TowpathWire

/// What a ``ReconnectingConnection`` does: told through ``ReconnectingConnection/onEvent(_:)``.
///
/// More cases may come in later versions: a `switch` over them needs a `default`.
public enum ReconnectEvent: Sendable, CustomStringConvertible {
    /// There is no way to the other side: nothing is tried until one appears.
    case waitingForPath(Path)
    /// An attempt begins, the first, or so many since the last connection that was stable.
    case connecting(attempt: Int)
    /// A connection stands.
    case connected
    /// An attempt failed.
    case attemptFailed(NetworkError)
    /// A connection that stood is gone: what the body threw, or how the peer ended.
    case disconnected(NetworkError)
    /// The next attempt comes after this time, or when a path that was lost returns.
    case waiting(Duration)

    /// The event in words.
    public var description: String {
        switch self {
        case .waitingForPath(let path): "no path: \(path)"
        case .connecting(let attempt): "connecting, attempt \(attempt)"
        case .connected: "connected"
        case .attemptFailed(let error): "not connected: \(error)"
        case .disconnected(let error): "disconnected: \(error)"
        case .waiting(let delay): "trying again in \(delay)"
        }
    }
}
