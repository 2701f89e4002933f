import Testing
import TowpathWire

@Suite("NLMSG_ERROR and NLMSG_DONE")
struct AnswerTests {
    @Test(
        "success, and errors without words",
        arguments: [
            ("acknowledged", Int32(0)), ("noRoute4", 101), ("noRoute6", 101),
            ("unreachable4", 113), ("blackhole4", 22), ("prohibit4", 13), ("entryNone4", 113),
            ("noSuchLink", 19),
        ])
    func errors(name: String, errno: Int32) throws {
        #expect(try content(of: Kernel.named(name)) == .acknowledgement(errno: errno, message: nil))
    }

    @Test(
        "the kernel's words stand behind the request, whole or capped",
        arguments: ["refusedFlag", "refusedFlagCapped"])
    func words(name: String) throws {
        let words = "ipv6: Invalid flags for get route request"
        let answer = try content(of: Kernel.named(name))
        #expect(answer == .acknowledgement(errno: 22, message: words))
    }

    @Test("capped and whole differ in the flag and the length")
    func capped() throws {
        let found = try messages(in: Kernel.refusedFlag + Kernel.refusedFlagCapped)
        #expect(found.map(\.flags) == [.hasAttributes, [.hasAttributes, .capped]])
        #expect(found[0].payload.count == found[1].payload.count + 32)
    }

    private func answer(_ flags: UInt16, _ length: UInt32, _ rest: [UInt8]) -> [UInt8] {
        let header = Made.number(length) + Made.zeros(12)
        return Made.message(2, flags: flags, Made.number(Int32(-1)) + header + rest)
    }

    @Test("attributes begin behind the padding of the request")
    func padding() throws {
        let words = Made.attribute(2, [1, 2, 3, 4]) + Made.attribute(1, Array("no\0".utf8))
        let message = answer(0x200, 17, [9, 0, 0, 0] + words)
        #expect(try content(of: message) == .acknowledgement(errno: 1, message: "no"))
    }

    @Test("without the flag nothing behind the header is looked at")
    func noAttributes() throws {
        let message = answer(0, 1_000, [1, 0, 0, 0, 0])
        #expect(try content(of: message) == .acknowledgement(errno: 1, message: nil))
    }

    @Test(
        "a request that cannot be that long is refused",
        arguments: [
            (UInt32(0), NetlinkError.lengthTooSmall(0)), (12, .lengthTooSmall(12)),
            (17, .lengthTooLarge(20, available: 16)),
            (.max, .lengthTooLarge(0x1_0000_0000, available: 16)),
        ])
    func malformed(length: UInt32, error: NetlinkError) {
        #expect(throws: error) { try contents(of: answer(0x200, length, [])) }
    }

    @Test("a broken attribute and a short body are refused")
    func malformedRest() {
        #expect(throws: NetlinkError.lengthTooSmall(1)) {
            try contents(of: answer(0x300, 16, [1, 0, 0, 0]))
        }
        for count in 0..<20 {
            #expect(throws: NetlinkError.truncated(needed: 20, found: count)) {
                try contents(of: Made.message(2, Made.zeros(count)))
            }
        }
    }

    @Test("an errno has either sign, and the lowest number does not trap")
    func signs() throws {
        for (number, errno) in [(Int32(-4), Int32(4)), (4, 4), (.min, .max), (.max, .max)] {
            let end = Made.message(3, Made.number(number))
            #expect(try content(of: end) == .done(errno: errno))
            let error = Made.message(2, Made.number(number) + Made.zeros(16))
            #expect(try content(of: error) == .acknowledgement(errno: errno, message: nil))
        }
    }

    @Test("R-22: the number at the end of a list may be absent, or too short", arguments: 0..<4)
    func shortEnd(count: Int) throws {
        let end = Made.message(3, [UInt8](repeating: 0xFF, count: count))
        #expect(try content(of: end) == .done(errno: 0))
    }

    @Test("R-22: the number at the end of a list may have something behind it")
    func longEnd() throws {
        for count in 1...5 {
            let end = Made.message(3, Made.number(Int32(-2)) + Made.zeros(count))
            #expect(try content(of: end) == .done(errno: 2))
        }
        // "ipv4: FIB table does not exist".
        #expect(try content(of: Kernel.missingTable) == .done(errno: 2))
    }
}
