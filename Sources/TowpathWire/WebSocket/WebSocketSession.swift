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

    private let role: Role
    private let limits: Limits
    private let deflate: PermessageDeflate?
    private let compression: PermessageDeflate.Configuration

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
    private var deflater: Deflater?

    package init(
        _ role: Role, limits: Limits = Limits(), deflate: PermessageDeflate? = nil,
        compression: PermessageDeflate.Configuration = .init()
    ) {
        self.role = role
        self.limits = limits
        self.deflate = deflate
        self.compression = compression
    }

    /// Whether nothing of a message or frame lies here: what is kept of an idle one.
    package var isBetweenMessages: Bool { opcode == nil && frame == nil && head.isEmpty }

    // MARK: In

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

    // MARK: Out

    /// Appends a data frame: of a whole message, or of a part of one, whose first frame has the opcode and
    /// whose others continue it.
    package mutating func append(
        _ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer, isFinal: Bool = true,
        compressing: Bool, maskKey: UInt32?, to output: inout [UInt8]
    ) {
        guard compressing, deflate != nil,
            let compressed = compressed(opcode, payload, isFinal: isFinal)
        else {
            return Self.append(
                WebSocketFrameHeader(
                    opcode, isFinal: isFinal, payloadCount: payload.count, maskKey: maskKey),
                payload, to: &output)
        }
        compressed.withUnsafeBytes {
            Self.append(
                WebSocketFrameHeader(
                    opcode, isFinal: isFinal, isCompressed: opcode != .continuation,
                    payloadCount: $0.count, maskKey: maskKey),
                $0, to: &output)
        }
    }

    /// Whether a message of this size is to be compressed.
    package func compresses(_ byteCount: Int) -> Bool {
        deflate != nil && byteCount >= compression.minimumSize
    }

    /// Nil if there is no memory for it: the message goes as it is.
    private mutating func compressed(
        _ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer, isFinal: Bool
    ) -> [UInt8]? {
        var deflater = self.deflater.take()
        // What began as it is goes on so.
        if deflater == nil, opcode != .continuation {
            let bits = role == .server ? deflate?.serverWindowBits : deflate?.clientWindowBits
            deflater = try? Deflater(windowBits: bits ?? 15, level: compression.level)
        }
        if deflater == nil { return nil }
        var output: [UInt8] = []
        deflater?.deflate(payload, isFinal: isFinal, into: &output)
        let forgets = role == .server ? deflate?.serverForgets : deflate?.clientForgets
        if !isFinal || forgets != true { self.deflater = deflater }
        return output
    }

    /// A control frame with at most 125 bytes.
    package static func control(
        _ opcode: WebSocketOpcode, _ payload: [UInt8], maskKey: UInt32?
    ) -> [UInt8] {
        var output: [UInt8] = []
        payload.prefix(125).withUnsafeBytes {
            append(
                WebSocketFrameHeader(opcode, payloadCount: $0.count, maskKey: maskKey), $0,
                to: &output)
        }
        return output
    }

    private static func append(
        _ header: WebSocketFrameHeader, _ payload: UnsafeRawBufferPointer, to output: inout [UInt8]
    ) {
        let start = output.count
        output.append(contentsOf: repeatElement(0, count: header.count + payload.count))
        output.withUnsafeMutableBytes { bytes in
            let target = UnsafeMutableRawBufferPointer(rebasing: bytes[start...])
            header.write(payload, to: target)
        }
    }
}

extension WebSocketFrameHeader {
    /// Writes head and payload, which is masked if there is a key, to memory that has room for both.
    package func write(_ payload: UnsafeRawBufferPointer, to target: UnsafeMutableRawBufferPointer)
    {
        write(to: target)
        let body = UnsafeMutableRawBufferPointer(rebasing: target[count...])
        if let maskKey {
            WebSocketMask.copy(payload, to: body, key: maskKey)
        } else {
            body.copyMemory(from: payload)
        }
    }
}

extension WebSocketCloseStatus {
    /// Reads a Close frame's payload (RFC 6455 §5.5.1).
    init(_ payload: [UInt8]) throws(WebSocketError) {
        guard !payload.isEmpty else {
            self.init(.noStatusReceived)
            return
        }
        guard payload.count >= 2 else { throw .violation("a Close frame has half a code") }
        let code = WebSocketCloseCode(rawValue: UInt16(payload[0]) << 8 | UInt16(payload[1]))
        guard code.isSendable else { throw .violation("a Close frame has the code \(code)") }
        var validator = UTF8Validator()
        let isValid = payload.withUnsafeBytes {
            validator.consume(UnsafeRawBufferPointer(rebasing: $0[2...]))
        }
        guard isValid, validator.isComplete else {
            throw WebSocketError(.invalidFramePayloadData, "a reason is not UTF-8")
        }
        self.init(code, String(decoding: payload[2...], as: UTF8.self))
    }

    /// The payload of a Close frame that says this; of one without a code, none.
    package var payload: [UInt8] {
        guard code.isSendable else { return [] }
        let text = Array(reason.utf8)
        var count = min(text.count, 123)
        // Not in the middle of a character.
        while count < text.count, text[count] & 0xC0 == 0x80 { count -= 1 }
        return [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)] + text[..<count]
    }
}

extension UnsafeRawBufferPointer {
    fileprivate mutating func take(_ count: Int) {
        self = UnsafeRawBufferPointer(rebasing: self[count...])
    }
}

extension [UInt8] {
    fileprivate init(
        unmasking piece: UnsafeRawBufferPointer, _ header: WebSocketFrameHeader, _ offset: Int = 0
    ) {
        guard let key = header.maskKey else {
            self.init(piece)
            return
        }
        self.init(unsafeUninitializedCapacity: piece.count) { target, count in
            WebSocketMask.copy(
                piece, to: UnsafeMutableRawBufferPointer(target), key: key, offset: offset)
            count = piece.count
        }
    }

    fileprivate mutating func appendUnmasked(
        _ piece: UnsafeRawBufferPointer, _ header: WebSocketFrameHeader, _ offset: Int
    ) {
        let start = count
        append(contentsOf: piece)
        guard let key = header.maskKey else { return }
        withUnsafeMutableBytes {
            WebSocketMask.apply(
                key: key, to: UnsafeMutableRawBufferPointer(rebasing: $0[start...]), offset: offset)
        }
    }
}
