import Testing
import TowpathWire

@Suite("Netlink messages, one behind the other in a datagram")
struct NetlinkMessageTests {
    @Test("the header and payload of each are read")
    func header() throws {
        let first = Made.message(16, flags: 0x12, sequence: 0x0102_0304, [1, 2, 3, 4, 5])
        let second = Made.message(3, sequence: 9, [])
        let found = try messages(in: first + [0, 0, 0] + second)
        #expect(found.map(\.type) == [16, 3])
        #expect(found.map(\.flags) == [[.multipart, .dumpInterrupted], []])
        #expect(found.map(\.sequence) == [0x0102_0304, 9])
        #expect(found.map(\.port) == [0, 0])
        #expect(found.map { Array($0.payload) } == [[1, 2, 3, 4, 5], []])
    }

    @Test("a list of the kernel has its sequence number and port, and is of several parts")
    func list() throws {
        let found = try messages(in: Kernel.links)
        #expect(found.map(\.type) == [16, 16, 16, 3])
        #expect(found.allSatisfy { $0.flags == .multipart && $0.sequence == 7 })
        #expect(Set(found.map(\.port)).count == 1)
        #expect(found.map(\.payload.count) == [1_084, 1_116, 1_116, 4])
    }

    @Test("an event of the kernel carries the sequence number of whoever caused it, or 0")
    func event() throws {
        #expect(try messages(in: Kernel.renamed).map(\.sequence) == [0])
        let route = try #require(try messages(in: Kernel.default4).first)
        #expect(route.sequence != 0)
        #expect(route.port != 0)
    }

    @Test("an empty datagram has none")
    func empty() throws {
        #expect(try messages(in: []).isEmpty)
    }

    @Test("the padding of the last message may be missing", arguments: 1...3)
    func padding(extra: Int) throws {
        let found = try messages(in: Made.message(20, Made.zeros(extra)))
        #expect(found.map(\.payload.count) == [extra])
    }

    @Test("fewer bytes than a header are refused", arguments: 1..<16)
    func shortHeader(count: Int) {
        #expect(throws: NetlinkError.truncated(needed: 16, found: count)) {
            try messages(in: Array(Made.message(3, []).prefix(count)))
        }
        #expect(throws: NetlinkError.truncated(needed: 16, found: count)) {
            try messages(in: Made.message(3, []) + Made.zeros(count))
        }
    }

    @Test("a length below that of the header is refused", arguments: UInt32(0)..<16)
    func shortLength(length: UInt32) {
        let bytes = Made.number(length) + Made.zeros(28)
        #expect(throws: NetlinkError.lengthTooSmall(Int(length))) { try messages(in: bytes) }
    }

    @Test("a length above what there is is refused", arguments: [21, 1_000, UInt32.max])
    func longLength(length: UInt32) {
        let bytes = Made.number(length) + Made.zeros(16)
        #expect(throws: NetlinkError.lengthTooLarge(Int(length), available: 20)) {
            try messages(in: bytes)
        }
    }

    @Test("after an error there is no next one")
    func afterError() throws {
        let bytes = Made.message(3, []) + Made.number(UInt32(4)) + Made.zeros(12)
        var rest = NetlinkMessages((bytes + Made.message(3, []))[...])
        #expect(try rest.next()?.type == 3)
        #expect(throws: NetlinkError.lengthTooSmall(4)) { try rest.next() }
        #expect(try rest.next() == nil)
        #expect(try rest.next() == nil)
    }

    @Test("a type that nobody knows is something else", arguments: [UInt16(0), 1, 4, 30, 999])
    func other(type: UInt16) throws {
        #expect(try content(of: Made.message(type, [1, 2, 3])) == .other(type: type))
    }
}
