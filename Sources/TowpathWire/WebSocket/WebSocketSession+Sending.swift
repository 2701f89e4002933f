/// What goes: frames of messages, compressed where that was agreed on, and control frames.
extension WebSocketSession {
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
        withUnsafeTemporaryAllocation(
            byteCount: WebSocketFrameHeader.maximumCount, alignment: 1
        ) { target in
            header.write(to: target)
            output.append(contentsOf: target[..<header.count])
        }
        output.appendUnmasked(payload, header, 0)
    }
}
