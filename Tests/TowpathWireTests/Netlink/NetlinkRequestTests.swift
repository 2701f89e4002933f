import Testing
import TowpathWire

/// What the kernel makes of the requests is shown by the fixtures, which answer the same bytes, and
/// by the tests of the monitor in namespaces.
@Suite("Requests to NETLINK_ROUTE")
struct NetlinkRequestTests {
    private typealias Attribute = (type: UInt16, value: [UInt8])

    private func check(
        _ bytes: [UInt8], type: UInt16, flags: UInt16, body: [UInt8], _ expected: [Attribute]
    ) throws {
        let found = try messages(in: bytes)
        #expect(found.count == 1)
        let message = try #require(found.first)
        #expect(message.type == type)
        #expect(message.flags.rawValue == flags)
        #expect(message.sequence == 0x0102_0304)
        #expect(message.port == 0)
        #expect(Array(message.payload.prefix(body.count)) == body)
        var attributes: [Attribute] = []
        try NetlinkAttribute.forEach(in: message.payload.dropFirst(body.count)) {
            attributes.append(($0.type, Array($0.value)))
        }
        #expect(attributes.map(\.type) == expected.map(\.type))
        #expect(attributes.map(\.value) == expected.map(\.value))
        #expect(bytes.count % 4 == 0)
    }

    private let sequence: UInt32 = 0x0102_0304

    @Test("all interfaces, or one, without their counters")
    func links() throws {
        let filter: Attribute = (29, Made.number(UInt32(8)))
        try check(
            NetlinkRequest.links(sequence: sequence), type: 18, flags: 0x301, body: Made.zeros(16),
            [filter])
        try check(
            NetlinkRequest.link(index: 10, sequence: sequence), type: 18, flags: 1,
            body: Made.zeros(4) + Made.number(UInt32(10)) + Made.zeros(8), [filter])
    }

    @Test("all addresses")
    func addresses() throws {
        try check(
            NetlinkRequest.addresses(sequence: sequence), type: 22, flags: 0x301,
            body: Made.zeros(8), [])
    }

    @Test("the rules of a family", arguments: [(AddressFamily.ipv4, UInt8(2)), (.ipv6, 10)])
    func rules(family: AddressFamily, number: UInt8) throws {
        try check(
            NetlinkRequest.rules(family, sequence: sequence), type: 34, flags: 0x301,
            body: [number] + Made.zeros(11), [])
    }

    @Test(
        "the routes of a table: a number above 255 stands in the attribute only",
        arguments: [(UInt32(254), UInt8(254)), (255, 255), (256, 0), (51_820, 0)])
    func routes(table: UInt32, narrow: UInt8) throws {
        try check(
            NetlinkRequest.routes(.ipv6, table: table, sequence: sequence), type: 26,
            flags: 0x301, body: [10, 0, 0, 0, narrow] + Made.zeros(7),
            [(15, Made.number(table))])
    }

    @Test("the way of a packet of IPv4 asks for the table that was used")
    func route4() throws {
        let query = RouteQuery(to: .v4(IPv4Address(192, 0, 2, 1)))
        try check(
            NetlinkRequest.route(query, sequence: sequence), type: 26, flags: 1,
            body: [2, 32] + Made.zeros(6) + Made.number(UInt32(0x1000)), [(1, [192, 0, 2, 1])])
    }

    @Test("IPv6 is not asked for the table, a flag that it refuses")
    func route6() throws {
        let query = RouteQuery(to: .v6(.loopback))
        try check(
            NetlinkRequest.route(query, sequence: sequence), type: 26, flags: 1,
            body: [10, 128] + Made.zeros(10), [(1, Made.zeros(15) + [1])])
    }

    @Test("every selector, and the entry of the table")
    func selectors() throws {
        let four = RouteQuery(
            to: .v4(IPv4Address(192, 0, 2, 1)), source: .v4(IPv4Address(192, 0, 2, 2)),
            interface: 10, mark: 7, user: 1_000, matchesTable: true)
        let numbers: [Attribute] = [
            (4, Made.number(UInt32(10))), (16, Made.number(UInt32(7))),
            (25, Made.number(UInt32(1_000))),
        ]
        try check(
            NetlinkRequest.route(four, sequence: sequence), type: 26, flags: 1,
            body: [2, 32, 32] + Made.zeros(5) + Made.number(UInt32(0x3000)),
            [(1, [192, 0, 2, 1]), (2, [192, 0, 2, 2])] + numbers)
        let six = RouteQuery(
            to: .v6(.loopback), source: .v6(.any), interface: 10, mark: 7, user: 1_000,
            matchesTable: true)
        try check(
            NetlinkRequest.route(six, sequence: sequence), type: 26, flags: 1,
            body: [10, 128, 128] + Made.zeros(5) + Made.number(UInt32(0x2000)),
            [(1, Made.zeros(15) + [1]), (2, Made.zeros(16))] + numbers)
    }

    @Test("one neighbour, of either family")
    func neighbor() throws {
        let four = NeighborQuery(.v4(IPv4Address(192, 0, 2, 1)), on: 10)
        let rest = Made.number(UInt32(10)) + Made.zeros(4)
        try check(
            NetlinkRequest.neighbor(four, sequence: sequence), type: 30, flags: 1,
            body: [2, 0, 0, 0] + rest, [(1, [192, 0, 2, 1])])
        try check(
            NetlinkRequest.neighbor(
                NeighborQuery(.v6(.loopback), on: 10), sequence: sequence), type: 30, flags: 1,
            body: [10, 0, 0, 0] + rest, [(1, Made.zeros(15) + [1])])
        // The answer repeats what was asked, behind the errno.
        let request = NetlinkRequest.neighbor(four, sequence: 7)
        let answer = try #require(try messages(in: Kernel.neighborNone4).first)
        #expect(Array(answer.payload.dropFirst(4).prefix(request.count)) == request)
    }

    @Test("a request whose answer is an error is the one that was captured")
    func captured() throws {
        // The answer repeats the request behind the errno; the port is the socket's.
        let answer = try #require(try messages(in: Kernel.noRoute4).first)
        let request = NetlinkRequest.route(
            RouteQuery(to: .v4(IPv4Address(1, 1, 1, 1))), sequence: 7)
        var repeated = Array(answer.payload.dropFirst(4))
        repeated.replaceSubrange(12..<16, with: Made.zeros(4))
        #expect(repeated == request)
    }
}
