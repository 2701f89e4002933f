import Testing
import TowpathWire

@Suite("RFC 6455 §5.3: masks")
struct WebSocketMaskTests {
    private static let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
    private let key = UInt32(bigEndian: 0x37FA_213D)

    /// Octet i of the payload is combined with octet i mod 4 of the key.
    private func reference(_ bytes: [UInt8], from offset: Int) -> [UInt8] {
        bytes.enumerated().map { $1 ^ Self.key[($0 + offset) % 4] }
    }

    @Test("every size from any byte of the payload on, wherever it lies", arguments: 0..<8)
    func all(offset: Int) {
        for count in 0...40 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 7) }
            for (from, to) in [(0, 0), (1, 0), (0, 3), (5, 7), (7, 2)] {
                let source = [UInt8](repeating: 0xAA, count: from) + bytes + [0xAA]
                var target = [UInt8](repeating: 0xBB, count: to + count + 1)
                source.withUnsafeBytes { source in
                    target.withUnsafeMutableBytes { target in
                        WebSocketMask.copy(
                            UnsafeRawBufferPointer(rebasing: source[from..<from + count]),
                            to: UnsafeMutableRawBufferPointer(rebasing: target[to..<to + count]),
                            key: key, offset: offset)
                    }
                }
                #expect(Array(target[to..<to + count]) == reference(bytes, from: offset))
                #expect(target.last == 0xBB)
                #expect(target[..<to].allSatisfy { $0 == 0xBB })
            }
        }
    }

    @Test("in place, and again to undo it", arguments: 0..<8)
    func inPlace(offset: Int) {
        for count in 0...40 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 5) }
            for start in 0..<8 {
                var padded = [UInt8](repeating: 0xAA, count: start) + bytes
                let apply = { (padded: inout [UInt8]) in
                    padded.withUnsafeMutableBytes {
                        WebSocketMask.apply(
                            key: key, to: UnsafeMutableRawBufferPointer(rebasing: $0[start...]),
                            offset: offset)
                    }
                }
                apply(&padded)
                #expect(Array(padded[start...]) == reference(bytes, from: offset))
                apply(&padded)
                #expect(Array(padded[start...]) == bytes)
                #expect(padded[..<start].allSatisfy { $0 == 0xAA })
            }
        }
    }

    @Test("offsets far into a payload", arguments: [65_535, 1 << 40, Int.max])
    func far(offset: Int) {
        var bytes: [UInt8] = Array(0..<11)
        bytes.withUnsafeMutableBytes { WebSocketMask.apply(key: key, to: $0, offset: offset) }
        #expect(bytes == reference(Array(0..<11), from: offset % 4))
    }

    @Test("the example of §5.7 is read by a server")
    func example() {
        let bytes = hex("81 85 37 fa 21 3d 7f 9f 4d 51 58")
        #expect(heard(bytes, by: .server) == Heard(.text("Hello")))
        #expect(bytes == frame(0x81, Array("Hello".utf8), key: 0x37FA_213D))
        var client = WebSocketSession(.client)
        #expect(client.frame(.text("Hello"), key: key) == bytes)
    }

    @Test(
        "BR-047 masking: a masked frame of a server fails with 1002",
        arguments: [
            "88 82 00 00 00 00 03 E8", "89 80 00 00 00 00", "81 82 00 00 00 00 68 69",
            "81 FE 00 7E 00 00 00 00",
        ])
    func server(bytes: String) {
        #expect(heard(hex(bytes)) == Heard(failing: .protocolError))
    }

    @Test(
        "BR-047 masking: a frame of a client that is not masked fails with 1002",
        arguments: ["81 02 68 69", "89 00", "88 00", "88 02 03 E8", "82 7E 00 7E"])
    func client(bytes: String) {
        #expect(heard(hex(bytes), by: .server) == Heard(failing: .protocolError))
    }

    @Test("BR-047 masking: every frame of a client has the key that it is given")
    func keys() {
        var client = WebSocketSession(.client)
        for key in [0x0102_0304, 0xFFFF_FFFF, 0] as [UInt32] {
            let swapped = UInt32(bigEndian: key)
            #expect(client.frame(.text("hi"), key: swapped) == frame(0x81, [0x68, 0x69], key: key))
            #expect(
                WebSocketSession.control(.close, [3, 0xE8], maskKey: swapped)
                    == frame(0x88, [3, 0xE8], key: key))
        }
    }
}
