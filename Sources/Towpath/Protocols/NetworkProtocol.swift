/// A protocol that can stand on top of a connection's stack; what lies below it is part of it.
///
/// The kind decides what a connection can do: a ``StreamProtocol`` has `send` and `receive` of
/// bytes, a ``DatagramProtocol`` has datagrams. The compiler checks it.
public protocol NetworkProtocol: Sendable {
    /// The protocol and everything below it.
    var stack: ProtocolStack { get }
}

/// A protocol that carries a stream of bytes in both directions, such as ``TCP``.
public protocol StreamProtocol: NetworkProtocol {}

/// A protocol that carries datagrams, each whole or not at all, such as ``UDP``.
public protocol DatagramProtocol: NetworkProtocol {}

/// A protocol that carries messages, such as ``WebSocket`` or ``TLV``.
public protocol MessageProtocol: NetworkProtocol {}

/// The protocols of a connection from the transport up, with their options.
public struct ProtocolStack: Sendable {
    package enum Transport: Sendable {
        case tcp(TCP)
        case udp(UDP)
    }

    package let transport: Transport
    /// What lies between the transport and the top.
    package let tls: TLS?
    let webSocket: WebSocketOptions?
    /// Makes what each connection has for its own framing.
    var makeFraming: (@Sendable () -> any AnyObject & Sendable)?

    package init(transport: Transport, tls: TLS? = nil) {
        self.init(transport: transport, tls: tls, webSocket: nil)
    }

    init(transport: Transport, tls: TLS?, webSocket: WebSocketOptions?) {
        self.transport = transport
        self.tls = tls
        self.webSocket = webSocket
    }
}

/// Builds a protocol stack from one expression, or from the branches of an `if` of one type.
@resultBuilder
public enum ProtocolStackBuilder<Top: NetworkProtocol> {
    /// The protocol on top.
    public static func buildExpression(_ top: Top) -> Top { top }
    /// The protocol on top.
    public static func buildBlock(_ top: Top) -> Top { top }
    /// The first branch of an `if`.
    public static func buildEither(first top: Top) -> Top { top }
    /// The other branch of an `if`.
    public static func buildEither(second top: Top) -> Top { top }
}
