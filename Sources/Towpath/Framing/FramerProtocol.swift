/// How messages become bytes of a stream, and bytes messages: the framing of a protocol of one's own.
///
/// A connection makes a copy of the value for itself and keeps its changes, so it can remember what it
/// needs: how far it searched, a state of the protocol, a compressor. Its functions are called one at a
/// time, on any thread, and must not block: nothing else of the connection's framing goes on meanwhile.
///
///     struct Lines: FramerProtocol {
///         func decode(_ input: inout ArraySlice<UInt8>) -> String? {
///             guard let end = input.firstIndex(of: 10) else { return nil }
///             defer { input = input[(end + 1)...] }
///             return String(decoding: input[..<end], as: UTF8.self)
///         }
///         func encode(_ line: String, into output: inout [UInt8]) {
///             output += line.utf8
///             output.append(10)
///         }
///     }
///
///     Connection(to: "towel.example:4711") { Framer(Lines()) { TLS() } }
public protocol FramerProtocol: Sendable {
    /// What is sent.
    associatedtype Sending: Sendable
    /// What is received.
    associatedtype Receiving: Sendable

    /// Takes the next message off the front of what has come; nil, taking nothing, while it is incomplete.
    ///
    /// Called again with the same bytes and those behind them. What it throws, the receive throws; the
    /// next receive calls it again with what it left, so a framer decides for itself whether messages
    /// behind a bad one can be read.
    mutating func decode(_ input: inout ArraySlice<UInt8>) throws -> Receiving?

    /// Takes a last message that the end of the stream completes; called where something is left then.
    /// Default: none, and the receive throws ``NetworkError/Code/endOfStream``.
    mutating func decodeEnd(_ input: inout ArraySlice<UInt8>) throws -> Receiving?

    /// Appends the message's bytes. What it throws, the send throws, and nothing is sent.
    mutating func encode(_ message: Sending, into output: inout [UInt8]) throws
}

extension FramerProtocol {
    /// No message.
    public mutating func decodeEnd(_ input: inout ArraySlice<UInt8>) throws -> Receiving? { nil }
}

/// A message protocol that a framer makes: ``Framer``, ``TLV`` or ``Coder``.
public protocol FramedProtocol: MessageProtocol {
    /// What makes messages of bytes.
    associatedtype Framing: FramerProtocol
}

/// A message protocol of one's own over a stream.
public struct Framer<Framing: FramerProtocol>: FramedProtocol {
    private let framer: Framing
    private let below: ProtocolStack
    private var maximumSize = 16_777_216

    /// The framing over TCP.
    public init(_ framer: Framing) { self.init(framer) { TCP() } }

    /// The framing over the stream given.
    public init<Below: StreamProtocol>(
        _ framer: Framing, @ProtocolStackBuilder<Below> _ below: () -> Below
    ) {
        self.framer = framer
        self.below = below().stack
    }

    /// How many bytes may wait for a message to become whole; more throw
    /// ``NetworkError/Code/messageTooLong``. Default: 16 MiB.
    public func maximumMessageSize(_ byteCount: Int) -> Framer {
        var copy = self
        copy.maximumSize = max(0, byteCount)
        return copy
    }

    /// The framing and the stream below it.
    public var stack: ProtocolStack { below.framed(by: framer, .stream, maximumSize: maximumSize) }
}

extension ProtocolStack {
    func framed<Framing: FramerProtocol>(
        by framer: Framing, _ carrier: MessageCarrier, maximumSize: Int
    ) -> ProtocolStack {
        var copy = self
        copy.makeFraming = { FramingLayer(framer, carrier, maximumSize: maximumSize) }
        return copy
    }
}
