/// Messages with a type: a 32-bit type and a 32-bit length, both in network order, and the value.
///
///     Connection(to: "towel.example:4711") { TLV { TLS() } }
public struct TLV: FramedProtocol {
    /// What is sent and received.
    public struct Message: Sendable, Hashable {
        /// What the two sides agree on it to mean.
        public var type: UInt32
        /// The value.
        public var value: [UInt8]

        /// A message.
        public init(type: UInt32, value: [UInt8]) {
            self.type = type
            self.value = value
        }
    }

    /// How a message becomes bytes.
    public struct Framing: FramerProtocol {
        static let headerSize = 8
        var maximumSize = 1_048_576

        package init() {}

        /// Takes a message; throws ``NetworkError/Code/messageTooLong``, now and from then on, if one says
        /// that it is longer than the limit.
        public func decode(_ input: inout ArraySlice<UInt8>) throws -> Message? {
            guard input.count >= Self.headerSize else { return nil }
            let count = Int(UInt32(bigEndian: input.dropFirst(4)))
            guard count <= maximumSize else { throw tooLong(count, .receive) }
            guard input.count - Self.headerSize >= count else { return nil }
            let value = input.dropFirst(Self.headerSize).prefix(count)
            defer { input = input[value.endIndex...] }
            return Message(type: UInt32(bigEndian: input), value: Array(value))
        }

        /// Appends a message; throws ``NetworkError/Code/messageTooLong`` above the limit.
        public func encode(_ message: Message, into output: inout [UInt8]) throws {
            let count = message.value.count
            guard count <= maximumSize else { throw tooLong(count, .send) }
            output.reserveCapacity(output.count + Self.headerSize + count)
            message.type.appendBigEndian(to: &output)
            UInt32(count).appendBigEndian(to: &output)
            output += message.value
        }

        private func tooLong(_ count: Int, _ stage: NetworkError.Stage) -> NetworkError {
            NetworkError(
                .messageTooLong, stage,
                "a value of \(count) bytes; TLV's maximumValueSize allows \(maximumSize)")
        }
    }

    private var framer = Framing()
    private let below: ProtocolStack

    /// TLV over TCP.
    public init() { self.init { TCP() } }

    /// TLV over the stream given.
    public init<Below: StreamProtocol>(@ProtocolStackBuilder<Below> _ below: () -> Below) {
        self.below = below().stack
    }

    /// How many bytes a value may have, either way; up to 4,294,967,295. Default: 1 MiB.
    public func maximumValueSize(_ byteCount: Int) -> TLV {
        var copy = self
        copy.framer.maximumSize = min(max(0, byteCount), Int(UInt32.max))
        return copy
    }

    /// TLV and the stream below it.
    public var stack: ProtocolStack {
        below.framed(by: framer, .stream, maximumSize: framer.maximumSize + Framing.headerSize)
    }
}

extension UInt32 {
    /// The first four bytes; those that are missing count as zero.
    init(bigEndian bytes: ArraySlice<UInt8>) {
        self = 0
        for offset in 0..<4 {
            let index = bytes.startIndex + offset
            self = self << 8 | UInt32(index < bytes.endIndex ? bytes[index] : 0)
        }
    }

    func appendBigEndian(to bytes: inout [UInt8]) {
        for shift in [24, 16, 8, 0] as [UInt32] {
            bytes.append(UInt8(truncatingIfNeeded: self >> shift))
        }
    }
}
