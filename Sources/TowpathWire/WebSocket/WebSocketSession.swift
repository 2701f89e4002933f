/// A WebSocket behind its opening handshake, without I/O (RFC 6455, RFC 7692): bytes in, messages out;
/// messages in, frames out.
///
/// The same for client and server. Mask keys are passed in. After an error or a Close frame it takes no
/// more input.
package struct WebSocketSession: ~Copyable {
    package enum Role: Sendable { case client, server }

    package struct Limits: Hashable, Sendable {
        /// Bytes of a message, inflated.
        package var maximumMessageSize = 16_777_216
        /// Bytes of a frame's payload as they come; nil for no bound of its own.
        package var maximumFrameSize: Int?

        package init() {}
    }

    package enum Event: Equatable {
        case message(WebSocketMessage)
        case ping([UInt8])
        case pong([UInt8])
        case close(WebSocketCloseStatus)
    }

    private struct Frame {
        let header: WebSocketFrameHeader
        /// How much of its payload has come.
        var offset = 0

        var rest: Int { header.payloadCount - offset }
    }

    let role: Role
    let limits: Limits
    let deflate: PermessageDeflate?
    let compression: PermessageDeflate.Configuration

    // What comes.
    private var isOver = false
    /// The beginning of a frame's head whose rest is still to come.
    private var head: [UInt8] = []
    private var frame: Frame?
    /// The payload of the control frame.
    private var control: [UInt8] = []
    /// What the message is whose frames are coming; nil in between.
    private var opcode: WebSocketOpcode?
    private var isCompressed = false
    /// Its payload so far, unmasked and inflated.
    private var message: [UInt8] = []
    private var text = UTF8Validator()
    private var compressedCount = 0
    private var inflater: Inflater?

    // What goes.
    var deflater: Deflater?

    package init(
        _ role: Role, limits: Limits = Limits(), deflate: PermessageDeflate? = nil,
        compression: PermessageDeflate.Configuration = .init()
    ) {
        self.role = role
        self.limits = limits
        self.deflate = deflate
        self.compression = compression
    }

    /// The next event in the input, of which it takes what it needs; nil once it has taken all.
    package mutating func next(
        _ input: inout UnsafeRawBufferPointer
    ) throws(WebSocketError) -> Event? {
        if isOver {
            input = UnsafeRawBufferPointer(rebasing: input[input.count...])
            return nil
        }
        do throws(WebSocketError) {
            while true {
                if frame == nil, try !readHead(&input) { return nil }
                if let event = try readPayload(&input) { return event }
                if frame != nil { return nil }
            }
        } catch {
            isOver = true
            message = []
            throw error
        }
    }

    /// False if the head is not whole.
    private mutating func readHead(
        _ input: inout UnsafeRawBufferPointer
    ) throws(WebSocketError) -> Bool {
        if head.isEmpty, let count = WebSocketFrameHeader.count(of: input), input.count >= count {
            try begin(WebSocketFrameHeader(reading: input))
            input.take(count)
            return true
        }
        while let byte = input.first {
            head.append(byte)
            input.take(1)
            if head.count == 2 {
                try WebSocketFrameHeader.check(head[0], head[1])
                try checkMask(head[1] & 0x80 != 0)
            }
            let header = try head.withUnsafeBufferPointer { bytes throws(WebSocketError) in
                let bytes = UnsafeRawBufferPointer(bytes)
                return WebSocketFrameHeader.count(of: bytes) == bytes.count
                    ? try WebSocketFrameHeader(reading: bytes) : nil
            }
            guard let header else { continue }
            head = []
            try begin(header)
            return true
        }
        return false
    }

    /// Clients mask, servers do not (RFC 6455 §5.1).
    private func checkMask(_ isMasked: Bool) throws(WebSocketError) {
        guard isMasked == (role == .server) else {
            throw .violation(
                isMasked ? "a server's frame is masked" : "a client's frame is not masked")
        }
    }

    private mutating func begin(_ header: WebSocketFrameHeader) throws(WebSocketError) {
        try checkMask(header.maskKey != nil)
        if header.isCompressed {
            guard deflate != nil else {
                throw .violation("a compressed frame, which was not agreed on")
            }
            guard header.opcode == .text || header.opcode == .binary else {
                throw .violation("only the first frame of a message is marked as compressed")
            }
        }
        switch header.opcode {
        case .continuation:
            if opcode == nil { throw .violation("a message goes on that has not begun") }
        case .text, .binary:
            if opcode != nil { throw .violation("a message begins inside another") }
            opcode = header.opcode
            isCompressed = header.isCompressed
            text = UTF8Validator()
            compressedCount = 0
        case .close, .ping, .pong: break
        }
        if !header.opcode.isControl {
            let frameLimit = limits.maximumFrameSize ?? .max
            let room = isCompressed ? Int.max : limits.maximumMessageSize - message.count
            guard header.payloadCount <= min(frameLimit, room) else {
                throw WebSocketError(
                    .messageTooBig,
                    header.payloadCount > frameLimit
                        ? "a frame has more than \(frameLimit) bytes" : tooBig)
            }
        }
        frame = Frame(header: header)
    }

    private var tooBig: String { "a message has more than \(limits.maximumMessageSize) bytes" }

    /// What of the frame's payload is there; an event if the frame is whole and makes one.
    private mutating func readPayload(
        _ input: inout UnsafeRawBufferPointer
    ) throws(WebSocketError) -> Event? {
        guard let begun = frame else { return nil }
        let count = min(begun.rest, input.count)
        let piece = UnsafeRawBufferPointer(rebasing: input[..<count])
        let isWhole = count == begun.rest
        // Nothing came, and more is to come.
        if count == 0, !isWhole { return nil }
        input.take(count)
        frame?.offset += count
        if begun.header.opcode.isControl {
            control.appendUnmasked(piece, begun.header, begun.offset)
            guard isWhole else { return nil }
            return try endControl(begun.header.opcode)
        }
        if isWhole, begun.offset == 0, begun.header.isFinal, !isCompressed, message.isEmpty,
            begun.header.opcode != .continuation
        {
            return try whole(piece, begun.header)
        }
        try readData(piece, begun)
        guard isWhole else { return nil }
        frame = nil
        return begun.header.isFinal ? try endMessage() : nil
    }

    /// A message in one frame that is there as a whole goes straight into its result.
    private mutating func whole(
        _ piece: UnsafeRawBufferPointer, _ header: WebSocketFrameHeader
    ) throws(WebSocketError) -> Event {
        frame = nil
        opcode = nil
        guard header.opcode == .text else {
            return .message(.binary(.init(unmasking: piece, header)))
        }
        var isValid = true
        let text = String(unsafeUninitializedCapacity: piece.count) { target in
            let target = UnsafeMutableRawBufferPointer(
                rebasing: UnsafeMutableRawBufferPointer(target)[..<piece.count])
            WebSocketMask.copy(piece, to: target, key: header.maskKey ?? 0)
            var validator = UTF8Validator()
            isValid =
                validator.consume(UnsafeRawBufferPointer(target)) && validator.isComplete
            return isValid ? piece.count : 0
        }
        if !isValid { throw Self.noText }
        return .message(.text(text))
    }

    private static let noText = WebSocketError(.invalidFramePayloadData, "a text is not UTF-8")

    private mutating func readData(
        _ piece: UnsafeRawBufferPointer, _ begun: Frame
    ) throws(WebSocketError) {
        let before = message.count
        if isCompressed {
            let compressed = [UInt8](unmasking: piece, begun.header, begun.offset)
            compressedCount += compressed.count
            try inflate(compressed)
        } else {
            message.appendUnmasked(piece, begun.header, begun.offset)
        }
        try checkText(from: before)
    }

    private mutating func checkText(from start: Int) throws(WebSocketError) {
        guard opcode == .text else { return }
        let isValid = message.withUnsafeBytes {
            text.consume(UnsafeRawBufferPointer(rebasing: $0[start...]))
        }
        if !isValid { throw Self.noText }
    }

    private mutating func endMessage() throws(WebSocketError) -> Event {
        if isCompressed {
            let before = message.count
            try inflate(nil)
            try checkText(from: before)
            if peerForgets { inflater = nil }
        }
        defer {
            opcode = nil
            message = []
        }
        guard opcode == .text else { return .message(.binary(message)) }
        guard text.isComplete else { throw Self.noText }
        return .message(.text(String(decoding: message, as: UTF8.self)))
    }

    private var peerForgets: Bool {
        role == .server ? deflate?.clientForgets ?? true : deflate?.serverForgets ?? true
    }

    /// Inflates bytes of a message, or, without any, its end.
    private mutating func inflate(_ bytes: [UInt8]?) throws(WebSocketError) {
        var inflater = self.inflater.take()
        do throws(Inflater.Failure) {
            if inflater == nil {
                let bits = role == .server ? deflate?.clientWindowBits : deflate?.serverWindowBits
                inflater = try Inflater(windowBits: bits ?? 15)
            }
            let limit = limits.maximumMessageSize
            if let bytes {
                try inflater?.inflate(bytes, into: &message, limit: limit)
            } else {
                try inflater?.endMessage(into: &message, limit: limit)
            }
        } catch {
            switch error {
            case .malformed:
                throw WebSocketError(.invalidFramePayloadData, "a message cannot be inflated")
            case .tooLarge: throw WebSocketError(.messageTooBig, tooBig)
            case .noMemory: throw WebSocketError(.internalServerError, "no memory to inflate with")
            }
        }
        self.inflater = inflater
        if let expansion = compression.maximumExpansion,
            message.count > 65_536, message.count / expansion > compressedCount
        {
            throw WebSocketError(
                .messageTooBig,
                "a message is more than \(expansion) times as big as what came of it")
        }
    }

    private mutating func endControl(_ opcode: WebSocketOpcode) throws(WebSocketError) -> Event {
        let payload = control
        control = []
        frame = nil
        switch opcode {
        case .ping: return .ping(payload)
        case .pong: return .pong(payload)
        default:
            isOver = true
            return .close(try WebSocketCloseStatus(payload))
        }
    }
}
