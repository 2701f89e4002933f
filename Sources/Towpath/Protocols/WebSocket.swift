public import TowpathWire

/// WebSocket (RFC 6455) with compression of messages (RFC 7692), over ``TCP`` or ``TLS``.
///
///     Connection(to: "example.com:443") { WebSocket(path: "/chat") { TLS() } }
///     Listener(on: .port(80)) { WebSocket() }
///
/// An option that cannot have its effect fails the opening with ``NetworkError/Code/optionFailed``. What
/// a server answers other than 101 is ``NetworkError/Code/upgradeRefused``, with its status and fields.
public struct WebSocket: MessageProtocol {
    /// Whether messages are compressed (permessage-deflate, RFC 7692), where the peer does it too.
    public struct Compression: Sendable, Hashable {
        package let configuration: PermessageDeflate.Configuration?

        /// With a window of 4 KiB in each direction, which a connection has once it uses it: 39 kB in all.
        public static let enabled = Compression(configuration: .init())
        /// Never.
        public static let disabled = Compression(configuration: nil)

        /// Compression with other numbers.
        ///
        /// - Parameters:
        ///   - windowBits: 9 to 15: how many bytes are remembered, as a power of two.
        ///   - keepsContext: Whether a message may refer to earlier ones. Without, an idle connection keeps
        ///     no memory for it, and small messages hardly shrink.
        ///   - level: 1, the fastest, to 9.
        ///   - minimumSize: Smaller messages are sent as they are.
        ///   - maximumExpansion: A message of more than 64 KiB that is more times as big as what came of it
        ///     is refused with 1009; nil for no bound but the message's size. Deflate reaches 1,032.
        public static func enabled(
            windowBits: Int = 12, keepsContext: Bool = true, level: Int = 6, minimumSize: Int = 64,
            maximumExpansion: Int? = nil
        ) -> Compression {
            var configuration = PermessageDeflate.Configuration()
            configuration.windowBits = min(max(windowBits, 9), 15)
            configuration.keepsContext = keepsContext
            configuration.level = min(max(level, 1), 9)
            configuration.minimumSize = minimumSize
            configuration.maximumExpansion = maximumExpansion.map { max(1, $0) }
            return Compression(configuration: configuration)
        }
    }

    private var options = WebSocketOptions.Values()
    private let below: ProtocolStack

    /// WebSocket over TCP with its defaults.
    ///
    /// - Parameter path: What a client asks for, with a query if need be, percent-encoded as in a URL.
    public init(path: String = "/") { self.init(path: path) { TCP() } }

    /// WebSocket over the stream given: `TLS()` for what URLs call `wss`.
    public init<Below: StreamProtocol>(
        path: String = "/", @ProtocolStackBuilder<Below> _ below: () -> Below
    ) {
        self.below = below().stack
        options.path = path
    }

    /// WebSocket and the stream below it.
    public var stack: ProtocolStack {
        ProtocolStack(
            transport: below.transport, tls: below.tls, webSocket: WebSocketOptions(options))
    }

    // MARK: The handshake

    /// A client: the subprotocols that it offers, the preferred one first. A server may choose none.
    public func subprotocols(_ names: String...) -> WebSocket {
        with { $0.subprotocols = names }
    }

    /// A client: a further field of its request, such as `Authorization` or `Origin`.
    public func field(_ name: String, _ value: String) -> WebSocket {
        with { $0.fields.append(HTTPField(name, value)) }
    }

    /// A client: the Host that it asks for. Default: the endpoint's, with its port unless that is 80, or
    /// 443 with TLS.
    public func host(_ name: String) -> WebSocket { with { $0.host = name } }

    /// A listener: answers requests. It sees path, fields, subprotocols and origin before there is a
    /// connection, and may wait, within ``handshakeTimeout(_:)``. Default: accepts all, without a
    /// subprotocol.
    public func onRequest(
        _ respond: @escaping @Sendable (WebSocketRequest) async -> WebSocketResponse
    ) -> WebSocket {
        with { $0.acceptor = respond }
    }

    /// A listener: how long a client may take for its request, and ``onRequest(_:)`` for the answer. A
    /// client's connection timeout counts there. Default: 10 s.
    public func handshakeTimeout(_ limit: Duration) -> WebSocket {
        with { $0.handshakeTimeout = limit }
    }

    /// Whether and how messages are compressed. Default: ``Compression/enabled``.
    public func compression(_ compression: Compression) -> WebSocket {
        with { $0.compression = compression }
    }

    // MARK: Limits and life

    /// How many bytes a message may have, inflated; a larger one ends the connection with 1009.
    /// Default: 16 MiB.
    public func maximumMessageSize(_ byteCount: Int) -> WebSocket {
        with { $0.limits.maximumMessageSize = max(0, byteCount) }
    }

    /// How many bytes of payload a frame may have, as it comes. Default: no limit of its own.
    public func maximumFrameSize(_ byteCount: Int) -> WebSocket {
        with { $0.limits.maximumFrameSize = max(0, byteCount) }
    }

    /// Whether pings are answered without asking (RFC 6455 §5.5.2). Default: true.
    public func automaticPong(_ enabled: Bool) -> WebSocket { with { $0.answersPings = enabled } }

    /// Sends a ping when nothing came for `interval`, and fails the connection with
    /// ``NetworkError/Code/timedOut`` once so many in a row had no answer. It pauses while a message lies
    /// unread, since nothing is read then. Default: none are sent.
    public func keepAlive(every interval: Duration, missedPongLimit: Int = 2) -> WebSocket {
        with {
            $0.keepAliveInterval = max(interval, .milliseconds(1))
            $0.missedPongLimit = max(1, missedPongLimit)
        }
    }

    /// How long `close` waits for the peer's Close frame. Default: 5 s.
    public func closeTimeout(_ limit: Duration) -> WebSocket { with { $0.closeTimeout = limit } }

    private func with(_ change: (inout WebSocketOptions.Values) -> Void) -> WebSocket {
        var copy = self
        change(&copy.options)
        return copy
    }
}

/// The options of ``WebSocket``, behind a pointer: connections share them, and frames that wait hold no
/// more.
@dynamicMemberLookup
final class WebSocketOptions: Sendable {
    typealias Acceptor = @Sendable (WebSocketRequest) async -> WebSocketResponse

    struct Values: Sendable {
        var path = "/"
        var host: String?
        var subprotocols: [String] = []
        var fields: HTTPFields = []
        var limits = WebSocketSession.Limits()
        var compression = WebSocket.Compression.enabled
        var answersPings = true
        var keepAliveInterval: Duration?
        var missedPongLimit = 2
        var closeTimeout: Duration = .seconds(5)
        var handshakeTimeout: Duration = .seconds(10)
        var acceptor: Acceptor?
    }

    private let values: Values

    init(_ values: Values) { self.values = values }

    subscript<Value>(dynamicMember path: any KeyPath<Values, Value> & Sendable) -> Value {
        values[keyPath: path]
    }
}
