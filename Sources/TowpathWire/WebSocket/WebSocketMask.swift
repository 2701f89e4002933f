/// The masking of payloads (RFC 6455 §5.3): each byte is combined with one of the key's four in turn.
package enum WebSocketMask {
    /// Masks or unmasks in place, from byte `offset` of the payload on.
    package static func apply(
        key: UInt32, to bytes: UnsafeMutableRawBufferPointer, offset: Int = 0
    ) {
        copy(UnsafeRawBufferPointer(bytes), to: bytes, key: key, offset: offset)
    }

    /// Masks or unmasks on the way to a target of the same size. 32 bytes at a time, then eight.
    package static func copy(
        _ source: UnsafeRawBufferPointer, to target: UnsafeMutableRawBufferPointer, key: UInt32,
        offset: Int = 0
    ) {
        guard let from = source.baseAddress, let to = target.baseAddress else { return }
        // The key from the offset on, as it lies in memory.
        let shift = UInt32(offset & 3) * 8
        let little = UInt32(littleEndian: key)
        let turned = shift == 0 ? little : little >> shift | little << (32 - shift)
        let word = (UInt64(turned) << 32 | UInt64(turned)).littleEndian
        let count = min(source.count, target.count)
        var index = 0
        let block = SIMD4<UInt64>(repeating: word)
        while index + 32 <= count {
            let value = from.loadUnaligned(fromByteOffset: index, as: SIMD4<UInt64>.self) ^ block
            to.storeBytes(of: value, toByteOffset: index, as: SIMD4<UInt64>.self)
            index += 32
        }
        while index + 8 <= count {
            let value = from.loadUnaligned(fromByteOffset: index, as: UInt64.self) ^ word
            to.storeBytes(of: value, toByteOffset: index, as: UInt64.self)
            index += 8
        }
        var rest = turned
        while index < count {
            let value =
                from.load(fromByteOffset: index, as: UInt8.self) ^ UInt8(truncatingIfNeeded: rest)
            to.storeBytes(of: value, toByteOffset: index, as: UInt8.self)
            rest = rest >> 8 | rest << 24
            index += 1
        }
    }
}

extension UnsafeRawBufferPointer {
    mutating func take(_ count: Int) {
        self = UnsafeRawBufferPointer(rebasing: self[count...])
    }
}

extension [UInt8] {
    /// Not `init(unsafeUninitializedCapacity:)`, which the compiler leaves unspecialized: 400 instructions.
    init(
        unmasking piece: UnsafeRawBufferPointer, _ header: WebSocketFrameHeader, _ offset: Int = 0
    ) {
        self.init(piece)
        guard let key = header.maskKey else { return }
        withUnsafeMutableBytes { WebSocketMask.apply(key: key, to: $0, offset: offset) }
    }

    mutating func appendUnmasked(
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
