/// What a frame is (RFC 6455 §5.2).
package enum WebSocketOpcode: UInt8, Sendable {
    case continuation = 0
    case text = 1
    case binary = 2
    case close = 8
    case ping = 9
    case pong = 10

    var isControl: Bool { rawValue >= 8 }
}

/// The head of a frame (RFC 6455 §5.2).
package struct WebSocketFrameHeader: Equatable, Sendable {
    /// Two bytes, eight of length, four of mask.
    package static let maximumCount = 14

    package var isFinal: Bool
    /// RSV1, which marks a compressed message (RFC 7692 §6).
    package var isCompressed: Bool
    package var opcode: WebSocketOpcode
    package var payloadCount: Int
    /// The key's four bytes as they lie in memory; nil for a frame that is not masked.
    package var maskKey: UInt32?

    package init(
        _ opcode: WebSocketOpcode, isFinal: Bool = true, isCompressed: Bool = false,
        payloadCount: Int, maskKey: UInt32? = nil
    ) {
        self.opcode = opcode
        self.isFinal = isFinal
        self.isCompressed = isCompressed
        self.payloadCount = payloadCount
        self.maskKey = maskKey
    }

    /// How many bytes the head has that begins so; nil while there are not two. At least two even if
    /// they are wrong.
    package static func count(of bytes: UnsafeRawBufferPointer) -> Int? {
        guard bytes.count >= 2 else { return nil }
        let lengthCount = bytes[1] & 0x7F == 127 ? 8 : bytes[1] & 0x7F == 126 ? 2 : 0
        return 2 + lengthCount + (bytes[1] & 0x80 == 0 ? 0 : 4)
    }

    /// Checks what the first two bytes say by themselves, so that a wrong frame fails before its length.
    static func check(_ first: UInt8, _ second: UInt8) throws(WebSocketError) {
        if first & 0x30 != 0 { throw .violation("a reserved bit is set (RSV2 or RSV3)") }
        guard let opcode = WebSocketOpcode(rawValue: first & 0x0F) else {
            throw .violation("frames of opcode \(first & 0x0F) are not defined")
        }
        guard opcode.isControl else { return }
        if first & 0x80 == 0 { throw .violation("a control frame is fragmented") }
        if second & 0x7F > 125 { throw .violation("a control frame has more than 125 bytes") }
    }

    /// Reads a head of which `count(of:)` bytes are there.
    package init(reading bytes: UnsafeRawBufferPointer) throws(WebSocketError) {
        let (first, second) = (bytes[0], bytes[1])
        try Self.check(first, second)
        guard let opcode = WebSocketOpcode(rawValue: first & 0x0F) else {
            throw .violation("an opcode is not defined")
        }
        let count: UInt64
        var offset = 2
        switch second & 0x7F {
        case 126:
            count = UInt64(
                UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
            offset = 4
            if count < 126 { throw .violation("a length is written longer than it need be") }
        case 127:
            count = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt64.self))
            offset = 10
            if count < 65_536 { throw .violation("a length is written longer than it need be") }
            if count >> 63 != 0 { throw .violation("the highest bit of a length is set") }
        case let short: count = UInt64(short)
        }
        self.opcode = opcode
        isFinal = first & 0x80 != 0
        isCompressed = first & 0x40 != 0
        payloadCount = Int(count)
        maskKey =
            second & 0x80 == 0
            ? nil : bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
    }

    /// How many bytes it takes.
    package var count: Int {
        (payloadCount < 126 ? 2 : payloadCount < 65_536 ? 4 : 10) + (maskKey == nil ? 0 : 4)
    }

    /// Writes it to the beginning of memory that has room for ``count`` bytes.
    package func write(to target: UnsafeMutableRawBufferPointer) {
        target[0] = opcode.rawValue | (isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0)
        let mask: UInt8 = maskKey == nil ? 0 : 0x80
        var offset = 2
        if payloadCount < 126 {
            target[1] = mask | UInt8(payloadCount)
        } else if payloadCount < 65_536 {
            target[1] = mask | 126
            target.storeBytes(
                of: UInt16(payloadCount).bigEndian, toByteOffset: 2, as: UInt16.self)
            offset = 4
        } else {
            target[1] = mask | 127
            target.storeBytes(
                of: UInt64(payloadCount).bigEndian, toByteOffset: 2, as: UInt64.self)
            offset = 10
        }
        if let maskKey { target.storeBytes(of: maskKey, toByteOffset: offset, as: UInt32.self) }
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
