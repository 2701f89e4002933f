import Testing
import TowpathReactor

@Suite("Scratch", .timeLimit(.minutes(1)))
struct ScratchTests {
    @Test("a thread has one buffer, another thread another")
    func perThread() async throws {
        try await withLoop { first in
            try await withLoop { second in
                let own = try await first.run { UInt(bitPattern: Scratch.buffer) }
                let again = try await first.run { UInt(bitPattern: Scratch.buffer) }
                let other = try await second.run { UInt(bitPattern: Scratch.buffer) }
                #expect(own == again)
                #expect(own != other)
            }
        }
    }

    @Test("all of the buffer can be written")
    func size() {
        let buffer = UnsafeMutableRawBufferPointer(
            start: Scratch.buffer, count: Scratch.byteCount)
        for index in buffer.indices { buffer[index] = UInt8(truncatingIfNeeded: index) }
        #expect(buffer.last == 0xFF)
        #expect(buffer.count == 65_536)
    }
}
