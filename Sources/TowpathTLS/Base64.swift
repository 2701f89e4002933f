/// Base 64 (RFC 4648 §4), with padding, and nothing but it.
enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << (8 * (3 - group.count))
            for digit in 0..<4 {
                let isPadding = digit > group.count
                let value = Int(bits >> (18 - 6 * digit) & 63)
                text.append(isPadding ? UInt8(ascii: "=") : alphabet[value])
            }
        }
        return text
    }

    /// Nil for anything that `encode` would not write.
    static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        for character in text where character != UInt8(ascii: "=") {
            guard let value = alphabet.firstIndex(of: character) else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 1
            if count % 4 == 0 {
                bytes += [16, 8, 0].map { UInt8(truncatingIfNeeded: bits >> $0) }
                bits = 0
            }
        }
        switch count % 4 {
        case 2: bytes.append(UInt8(truncatingIfNeeded: bits >> 4))
        case 3:
            bytes += [UInt8(truncatingIfNeeded: bits >> 10), UInt8(truncatingIfNeeded: bits >> 2)]
        case 1: return nil
        default: break
        }
        return encode(bytes).elementsEqual(text) ? bytes : nil
    }
}
