import TestSupport
import Testing
import TowpathWire

@Suite("Datagrams that are broken")
struct MalformedTests {
    /// Parses all that can be parsed; true if there was an error.
    @discardableResult
    private func isRefused(_ bytes: [UInt8]) -> Bool {
        do {
            for message in try messages(in: bytes) { _ = try RouteNetlink(message) }
            return false
        } catch {
            return true
        }
    }

    @Test("every fixture is read, and none is empty", arguments: Kernel.all.map(\.name))
    func fixtures(name: String) throws {
        let found = try contents(of: Kernel.named(name))
        #expect(!found.isEmpty)
        #expect(!found.contains { if case .other = $0 { true } else { false } })
    }

    @Test(
        "a datagram that is cut in the middle of a message is refused, at its end it is read",
        arguments: Kernel.all.map(\.name))
    func cut(name: String) throws {
        let bytes = Kernel.named(name)
        var ends: Set<Int> = []
        for message in try messages(in: bytes) {
            ends.insert((ends.max() ?? 0) + 16 + message.payload.count)
        }
        var wrong: [Int] = []
        for count in 1..<bytes.count
        where isRefused(Array(bytes.prefix(count))) == ends.contains(count) {
            wrong.append(count)
        }
        #expect(wrong == [])
    }

    @Test(
        "a message whose length says that it ends earlier is read or refused",
        arguments: Kernel.all.map(\.name))
    func shortened(name: String) throws {
        let bytes = Kernel.named(name)
        var start = 0
        for message in try messages(in: bytes) {
            let length = 16 + message.payload.count
            for count in 16..<length {
                let body = bytes[(start + 4)..<(start + count)]
                isRefused(Made.number(UInt32(count)) + body)
            }
            start += length
        }
    }

    @Test("random changes of bytes do not trap", arguments: Kernel.all.map(\.name))
    func flipped(name: String) throws {
        let bytes = Kernel.named(name)
        var random = SplitMix64(seed: 29)
        for _ in 0..<100 {
            var changed = bytes
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let place = Int.random(in: changed.indices, using: &random)
                changed[place] = UInt8.random(in: .min ... .max, using: &random)
            }
            isRefused(changed)
        }
    }

    @Test("random bytes behind a header that is right do not trap")
    func random() {
        var random = SplitMix64(seed: 30)
        let types: [UInt16] = [2, 3, 16, 17, 20, 21, 24, 25, 28, 29, 32, 33, 104]
        for _ in 0..<2_000 {
            let count = Int.random(in: 0...64, using: &random)
            let payload = (0..<count).map { _ in UInt8(random.next() % 24) }
            let type = types.randomElement(using: &random) ?? 2
            let flags: [UInt16] = [0, 0x100, 0x200, 0x300]
            isRefused(
                Made.message(type, flags: flags.randomElement(using: &random) ?? 0, payload))
        }
    }
}
