/// How values become bytes, such as ``JSONCoder``.
public protocol NetworkCoder: Sendable {
    /// Whether the bytes are text in UTF-8, which a WebSocket then carries as text.
    var isText: Bool { get }
    /// The value's bytes.
    func encode(_ value: some Encodable) throws -> [UInt8]
    /// The value of all the bytes.
    func decode<Value: Decodable>(_ type: Value.Type, from bytes: ArraySlice<UInt8>) throws -> Value
}

/// Values instead of bytes: each a message of a ``WebSocket``, a datagram of ``UDP``, or, over a stream,
/// behind its length, 32 bits in network order.
///
///     Connection(to: "chat.example:443") { Coder(Chat.self, using: .json) { WebSocket { TLS() } } }
///
/// What cannot be coded throws ``NetworkError/Code/codingFailed``, and the connection goes on: a message
/// that cannot be sent is not, and one that cannot be read has been taken.
public struct Coder<
    Sending: Encodable & Sendable, Receiving: Decodable & Sendable, Codec: NetworkCoder
>: FramedProtocol {
    /// How a value becomes bytes.
    public struct Framing: FramerProtocol {
        fileprivate let codec: Codec
        /// Nothing below keeps messages apart.
        fileprivate let hasLength: Bool
        fileprivate var maximumSize = 1_048_576

        fileprivate static var headerSize: Int { 4 }

        /// Takes a value.
        public func decode(_ input: inout ArraySlice<UInt8>) throws -> Receiving? {
            var bytes = input
            if hasLength {
                guard input.count >= Self.headerSize else { return nil }
                let count = Int(UInt32(bigEndian: input))
                try check(count, .receive)
                guard input.count - Self.headerSize >= count else { return nil }
                bytes = input.dropFirst(Self.headerSize).prefix(count)
            }
            input = input[bytes.endIndex...]
            try check(bytes.count, .receive)
            do { return try codec.decode(Receiving.self, from: bytes) } catch {
                throw NetworkError(
                    .codingFailed, .receive, "the message is no \(Receiving.self): \(error)")
            }
        }

        /// Appends a value.
        public func encode(_ value: Sending, into output: inout [UInt8]) throws {
            let bytes: [UInt8]
            do { bytes = try codec.encode(value) } catch {
                throw NetworkError(
                    .codingFailed, .send, "the \(Sending.self) cannot be encoded: \(error)")
            }
            try check(bytes.count, .send)
            if hasLength { UInt32(bytes.count).appendBigEndian(to: &output) }
            output += bytes
        }

        private func check(_ count: Int, _ stage: NetworkError.Stage) throws(NetworkError) {
            guard count > maximumSize else { return }
            throw NetworkError(
                .messageTooLong, stage,
                "a message of \(count) bytes; Coder's maximumMessageSize allows \(maximumSize)")
        }
    }

    private var framer: Framing
    private let below: ProtocolStack

    /// Values of one type for each direction.
    public init<Below: NetworkProtocol>(
        sending: Sending.Type, receiving: Receiving.Type, using codec: Codec,
        @ProtocolStackBuilder<Below> _ below: () -> Below
    ) {
        self.below = below().stack
        framer = Framing(codec: codec, hasLength: self.below.carrier == .stream)
    }

    /// Values of one type for each direction, over TCP.
    public init(sending: Sending.Type, receiving: Receiving.Type, using codec: Codec) {
        self.init(sending: sending, receiving: receiving, using: codec) { TCP() }
    }

    /// How many bytes a message may have, either way; up to 4,294,967,295, and no more than what is below
    /// takes. Default: 1 MiB.
    public func maximumMessageSize(_ byteCount: Int) -> Coder {
        var copy = self
        copy.framer.maximumSize = min(max(0, byteCount), Int(UInt32.max))
        return copy
    }

    /// The values and what is below them.
    public var stack: ProtocolStack {
        let carrier = below.carrier
        return below.framed(
            by: framer,
            carrier == .messages(.binary) && framer.codec.isText ? .messages(.text) : carrier,
            maximumSize: framer.maximumSize + Framing.headerSize)
    }
}

extension Coder where Sending == Receiving {
    /// Values of the same type in both directions.
    public init<Below: NetworkProtocol>(
        _ type: Sending.Type, using codec: Codec, @ProtocolStackBuilder<Below> _ below: () -> Below
    ) {
        self.init(sending: type, receiving: type, using: codec, below)
    }

    /// Values of the same type in both directions, over TCP.
    public init(_ type: Sending.Type, using codec: Codec) {
        self.init(type, using: codec) { TCP() }
    }
}

extension ProtocolStack {
    /// What keeps messages apart.
    fileprivate var carrier: MessageCarrier {
        if webSocket != nil { return .messages(.binary) }
        switch transport {
        case .tcp: return .stream
        case .udp: return .datagrams
        }
    }
}
