import TestSupport
import Testing
import Towpath
import TowpathReactor

/// A listener with an identity of its own authority, and clients that trust it.
struct SecureListener: Sendable {
    let root: Certificate
    let listener: Listener<TLS>
    let events = Inbox<ListenerEvent>()

    init(
        names: [String] = ["DNS:localhost", "IP:127.0.0.1"],
        _ change: (TLS, TestAuthority) throws -> TLS = { tls, _ in tls }
    ) async throws {
        let authority = try TestAuthority()
        root = authority.certificate
        let identity = try authority.issue(TestAuthority.Request("leaf", names))
        let tls = try change(TLS(identity: identity), authority)
        listener = try await Listener(on: .loopback()) { tls }
        let events = events
        listener.onEvent { events.send($0) }
    }

    var trust: TLS { TLS().trust(anchors: [root]) }

    func client(_ change: (TLS) -> TLS = { $0 }) -> Connection<TLS> {
        let tls = change(trust)
        return Connection(to: listener.localEndpoint) { tls }
    }

    /// A TCP connection to it.
    func plainClient() -> Connection<TCP> { Connection(to: listener.localEndpoint) { TCP() } }

    func serve<Value: Sendable>(
        _ handler: @escaping @Sendable (Connection<TLS>) async throws -> Void = echo,
        while body: () async throws -> Value
    ) async throws -> Value {
        try await serving(listener, handler, while: body)
    }

    /// The next handshake that failed.
    func failedHandshake() async throws -> NetworkError {
        while true {
            if case .handshakeFailed(let error, _) = try await events.next() { return error }
        }
    }
}

extension NetworkError {
    /// The alert that the peer sent.
    var alert: UInt8? { if case .alert(let number)? = cause { number } else { nil } }
}

/// `#expect` cannot hold a call that waits and throws where the closure's type is still unknown.
func expectEqual<Value: Equatable>(
    _ value: Value, _ expected: Value, sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(value == expected, sourceLocation: sourceLocation)
}
