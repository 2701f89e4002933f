import TestSupport
import Testing
import TowpathWire

@Suite("RFC 3629 §4: UTF-8 as it comes")
struct UTF8ValidatorTests {
    private func isValid(_ pieces: [UInt8]...) -> Bool {
        var validator = UTF8Validator()
        for piece in pieces where !piece.withUnsafeBytes({ validator.consume($0) }) { return false }
        return validator.isComplete
    }

    private func isValidInSwift(_ bytes: [UInt8]) -> Bool {
        String(validating: bytes, as: UTF8.self) != nil
    }

    @Test("every sequence of one or two bytes is judged as the standard library does")
    func short() {
        var wrong: [[UInt8]] = []
        for first in UInt8.min...UInt8.max {
            if isValid([first]) != isValidInSwift([first]) { wrong.append([first]) }
            for second in UInt8.min...UInt8.max {
                let bytes = [first, second]
                if isValid(bytes) != isValidInSwift(bytes) { wrong.append(bytes) }
                if isValid([first], [second]) != isValidInSwift(bytes) { wrong.append(bytes) }
            }
        }
        #expect(wrong == [])
    }

    @Test("every third byte behind the first two, and any fourth")
    func long() {
        let edges: [UInt8] = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF]
        var wrong: [[UInt8]] = []
        for first in UInt8(0xC0)...0xFF {
            for second in edges {
                for third in edges {
                    for fourth in edges {
                        let bytes = [first, second, third, fourth]
                        if isValid(bytes) != isValidInSwift(bytes) { wrong.append(bytes) }
                        let three = Array(bytes.prefix(3))
                        if isValid(three) != isValidInSwift(three) { wrong.append(three) }
                    }
                }
            }
        }
        #expect(wrong == [])
    }

    @Test("any bytes, in two pieces split anywhere")
    func random() {
        var random = SplitMix64(seed: 3629)
        var wrong: [[UInt8]] = []
        var validCount = 0
        for _ in 0..<4_000 {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 1...9, using: &random) {
                let scalar = Unicode.Scalar(UInt32.random(in: 0...0x11_0000, using: &random))
                bytes += Array(String(Character(scalar ?? "a")).utf8)
                if Int.random(in: 0..<3, using: &random) == 0 { bytes += Array("abcdefgh".utf8) }
            }
            if Bool.random(using: &random) {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                bytes[index] = UInt8.random(in: 0...255, using: &random)
            }
            let expected = isValidInSwift(bytes)
            if expected { validCount += 1 }
            for split in 0...bytes.count
            where isValid(Array(bytes[..<split]), Array(bytes[split...])) != expected {
                wrong.append(bytes)
            }
        }
        #expect(wrong == [])
        #expect((400..<3_600).contains(validCount))
    }

    @Test(
        "it fails at the first byte that no further ones can make good",
        arguments: [
            ("C0", 1), ("C1", 1), ("80", 1), ("F5", 1), ("FF", 1), ("C3 28", 2), ("E0 9F", 2),
            ("ED A0", 2), ("F0 8F", 2), ("F4 90", 2), ("E2 82 28", 3), ("F0 9F 98 C0", 4),
            ("CE BA E1 BD B9 CF 83 CE BC CE B5 F4 90", 13), ("61 62 63 64 65 66 67 68 80", 9),
        ])
    func early(bytes: String, count: Int) {
        var validator = UTF8Validator()
        var results: [Bool] = []
        for byte in hex(bytes) {
            results.append([byte].withUnsafeBytes { validator.consume($0) })
        }
        #expect(results.firstIndex(of: false) == count - 1)
    }

    @Test(
        "half a character is no failure, and not complete", arguments: ["C3", "E2 82", "F0 9F 98"])
    func incomplete(bytes: String) {
        var validator = UTF8Validator()
        #expect(hex("61 \(bytes)").withUnsafeBytes { validator.consume($0) })
        #expect(!validator.isComplete)
        #expect(hex("").withUnsafeBytes { validator.consume($0) })
        #expect(!validator.isComplete)
    }
}
