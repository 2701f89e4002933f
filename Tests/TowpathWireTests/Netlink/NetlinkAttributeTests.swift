import Testing
import TowpathWire

@Suite("Netlink attributes")
struct NetlinkAttributeTests {
    private func attributes(_ bytes: [UInt8]) throws(NetlinkError) -> [NetlinkAttribute] {
        let padded = [0xAA] + bytes + [0xAA]
        var list: [NetlinkAttribute] = []
        try NetlinkAttribute.forEach(in: padded[1..<(1 + bytes.count)]) { list.append($0) }
        return list
    }

    private func attribute(_ type: UInt16, _ value: [UInt8]) throws -> NetlinkAttribute {
        try #require(try attributes(Made.attribute(type, value)).first)
    }

    @Test("each has a type and a value, whatever its padding")
    func list() throws {
        let bytes =
            Made.attribute(1, [1]) + Made.attribute(2, []) + Made.attribute(3, [1, 2, 3, 4])
        let found = try attributes(bytes + Made.attribute(4, [1, 2, 3]))
        #expect(found.map(\.type) == [1, 2, 3, 4])
        #expect(found.map { Array($0.value) } == [[1], [], [1, 2, 3, 4], [1, 2, 3]])
        #expect(try attributes([]).isEmpty)
    }

    @Test("one of no bytes does not end or hold up the list")
    func empty() throws {
        let found = try attributes(Made.attribute(2, []) + Made.attribute(2, []) + [5, 0, 1, 0, 9])
        #expect(found.map(\.type) == [2, 2, 1])
        #expect(found.map(\.value.count) == [0, 0, 1])
    }

    @Test("the flags for nested and for network order are not part of the type")
    func typeFlags() throws {
        let bytes = Made.attribute(0x8012, []) + Made.attribute(0x4005, [])
        #expect(try attributes(bytes + Made.attribute(0xFFFF, [])).map(\.type) == [18, 5, 0x3FFF])
    }

    @Test("the padding of the last may be missing", arguments: 1...3)
    func lastPadding(count: Int) throws {
        let bytes = Made.attribute(1, Made.zeros(count)).prefix(4 + count)
        #expect(try attributes(Array(bytes)).map(\.value.count) == [count])
    }

    @Test("too few bytes for a header are padding", arguments: 1...3)
    func restIsPadding(count: Int) throws {
        #expect(try attributes(Made.attribute(1, []) + Made.zeros(count)).map(\.type) == [1])
    }

    @Test("a length below that of the header is refused", arguments: UInt16(0)..<4)
    func shortLength(length: UInt16) {
        #expect(throws: NetlinkError.lengthTooSmall(Int(length))) {
            try attributes(Made.attribute(1, [1]) + Made.number(length) + Made.zeros(6))
        }
    }

    @Test("a length above what there is is refused", arguments: [UInt16(9), 65_535])
    func longLength(length: UInt16) {
        #expect(throws: NetlinkError.lengthTooLarge(Int(length), available: 8)) {
            try attributes(Made.number(length) + Made.zeros(6))
        }
    }

    @Test("numbers are taken by their beginning, and refused if they are too short")
    func numbers() throws {
        let value = Made.number(UInt32(0x0403_0201)) + [9]
        let whole = try attribute(7, value)
        #expect(try whole.uint8() == value[0])
        #expect(try Made.number(whole.uint16()) == Array(value.prefix(2)))
        #expect(try whole.uint32() == 0x0403_0201)
        #expect(throws: NetlinkError.attributeSize(type: 7, size: 0)) {
            try attribute(7, []).uint8()
        }
        #expect(throws: NetlinkError.attributeSize(type: 7, size: 1)) {
            try attribute(7, [1]).uint16()
        }
        #expect(throws: NetlinkError.attributeSize(type: 7, size: 3)) {
            try attribute(7, [1, 2, 3]).uint32()
        }
    }

    @Test(
        "a text ends at its NUL byte or with the value",
        arguments: [
            (Array("eth0\0".utf8), "eth0"), (Array("eth0".utf8), "eth0"), ([], ""), ([0], ""),
            (Array("a\0b".utf8), "a"), ([0xFF, 0x61], "\u{FFFD}a"),
        ])
    func text(value: [UInt8], text: String) throws {
        #expect(try attribute(3, value).text() == text)
    }

    @Test("addresses have 4 or 16 bytes")
    func addresses() throws {
        #expect(try attribute(1, [192, 0, 2, 1]).address().description == "192.0.2.1")
        let six: [UInt8] = [0x20, 1, 0xD, 0xB8] + Made.zeros(11) + [1]
        #expect(try attribute(1, six).address().description == "2001:db8::1")
        for count in [0, 3, 5, 15, 17] {
            #expect(throws: NetlinkError.attributeSize(type: 1, size: count)) {
                try attribute(1, Made.zeros(count)).address()
            }
        }
    }
}
