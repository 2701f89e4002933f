/// Checks UTF-8 (RFC 3629) as it comes, and fails at the first byte that no further ones can make good.
package struct UTF8Validator: Sendable {
    /// How many bytes the present character still needs.
    private var needed: UInt8 = 0
    /// What the next one of them must be.
    private var low: UInt8 = 0x80
    private var high: UInt8 = 0xBF

    package init() {}

    /// Whether what came is whole.
    package var isComplete: Bool { needed == 0 }

    /// False if the bytes are wrong; no use after that.
    package mutating func consume(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        let count = bytes.count
        while index < count {
            if needed == 0 {
                // Eight of ASCII at a time.
                while index + 8 <= count,
                    bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                        & 0x8080_8080_8080_8080 == 0
                { index += 8 }
                guard index < count else { break }
                let byte = bytes[index]
                index += 1
                if byte >= 0x80, !begin(byte) { return false }
            } else {
                let byte = bytes[index]
                index += 1
                guard byte >= low, byte <= high else { return false }
                (low, high) = (0x80, 0xBF)
                needed -= 1
            }
        }
        return true
    }

    private mutating func begin(_ byte: UInt8) -> Bool {
        switch byte {
        case 0xC2...0xDF: needed = 1
        case 0xE0: (needed, low) = (2, 0xA0)
        case 0xE1...0xEC, 0xEE, 0xEF: needed = 2
        // Surrogates.
        case 0xED: (needed, high) = (2, 0x9F)
        case 0xF0: (needed, low) = (3, 0x90)
        case 0xF1...0xF3: needed = 3
        // Beyond U+10FFFF.
        case 0xF4: (needed, high) = (3, 0x8F)
        default: return false
        }
        return true
    }
}
