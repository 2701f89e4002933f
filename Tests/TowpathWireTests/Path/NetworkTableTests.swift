import Testing
import TowpathWire

@Suite("The table of interfaces and addresses")
struct NetworkTableTests {
    private typealias Change = NetworkTable.Change
    private var table = NetworkTable()

    private let w0 = LinkMessage(10, "w0") { $0.flags = [.up, .lowerUp] }

    @discardableResult
    private mutating func apply(_ bytes: [UInt8]) throws -> [Change?] {
        try contents(of: bytes).map { table.apply($0) }
    }

    @Test("a host as it is listed")
    mutating func list() throws {
        let changes = try apply(Kernel.links)
        #expect(changes.count { $0 != nil } == 3)
        #expect(changes.last == .some(nil))
        try apply(Kernel.addresses)
        #expect(table.links.keys.sorted() == [1, 10, 11])
        #expect(table.link(named: "w1")?.index == 11)
        #expect(table.link(named: "w2") == nil)
        #expect(table.link(10)?.kind == "veth")
        #expect(table.link(12) == nil)
        #expect(
            table.addresses(of: 10).compactMap { $0.address?.description }
                == ["192.0.2.2", "2001:db8::2", "2001:db8::dd", "fe80::ff:fe00:a"])
        #expect(table.addresses(of: 12).isEmpty)
    }

    @Test("what comes, changes and goes is told with what was before")
    mutating func links() {
        var changed = w0
        changed.mtu = 9_000
        #expect(table.apply(.newLink(w0)) == .link(old: nil, new: w0))
        #expect(table.apply(.newLink(changed)) == .link(old: w0, new: changed))
        #expect(table.apply(.removedLink(w0)) == .link(old: changed, new: nil))
        #expect(table.apply(.removedLink(w0)) == nil)
    }

    @Test("the same told again is no change")
    mutating func duplicates() throws {
        try apply(Kernel.links + Kernel.addresses)
        let before = table
        #expect(try apply(Kernel.links + Kernel.addresses).allSatisfy { $0 == nil })
        #expect(table == before)
        var same = try #require(table.link(10))
        (same.change, same.newIndex) = (.max, 7)
        #expect(table.apply(.newLink(same)) == nil)
        #expect(table.isSame(as: before))
    }

    @Test("a new name is a change of the same interface")
    mutating func renamed() throws {
        try apply(Kernel.links)
        let generation = table.links[11]?.generation
        guard case .link(let old, let new) = try apply(Kernel.renamed).first ?? nil else {
            Issue.record("no change")
            return
        }
        #expect(old?.name == "w1")
        #expect(new?.name == "renamed")
        #expect(table.links[11]?.generation == generation)
        #expect(table.link(named: "w1") == nil)
    }

    @Test("what a bridge tells of its ports is passed over: one that leaves is not gone")
    mutating func bridgePorts() throws {
        try apply(Kernel.kinds)
        let before = table
        #expect(try apply(Kernel.bridgePort + Kernel.bridgePortLeft) == [nil, nil])
        #expect(table == before)
        #expect(table.link(21)?.name == "vp")
    }

    @Test("BR-079: an index that is used again is another interface, without the old addresses")
    mutating func reused() throws {
        try apply(Kernel.links + Kernel.addresses)
        let first = try #require(table.links[11])
        #expect(!table.addresses(of: 11).isEmpty)
        try apply(Kernel.deleted)
        #expect(table.links[11] == nil)
        #expect(table.addresses(of: 11).isEmpty)
        #expect(!table.addresses(of: 10).isEmpty)
        try apply(Kernel.reused)
        let second = try #require(table.links[11])
        #expect(second.message.name == "w9")
        #expect(second.generation != first.generation)
        #expect(table.addresses(of: 11).isEmpty)
    }

    @Test("BR-079: the addresses go with their interface, though nothing tells of them")
    mutating func addressesGo() throws {
        _ = table.apply(.newLink(w0))
        _ = table.apply(.newAddress(try AddressMessage(10, "192.0.2.2", 24)))
        _ = table.apply(.newAddress(try AddressMessage(11, "192.0.2.3", 24)))
        _ = table.apply(.removedLink(w0))
        #expect(table.addresses.values.map(\.index) == [11])
    }

    @Test("BR-079: a name that is used again, with a new index, is another interface")
    mutating func renewed() {
        _ = table.apply(.newLink(w0))
        // The new one may be told of before the old one goes.
        _ = table.apply(.newLink(LinkMessage(12, "w0")))
        _ = table.apply(.removedLink(w0))
        #expect(table.link(named: "w0")?.index == 12)
    }

    @Test("BR-079: one that went to another namespace and came back is another interface")
    mutating func moved() throws {
        let vq = LinkMessage(22, "vq")
        _ = table.apply(.newLink(vq))
        let generation = table.links[22]?.generation
        #expect(try apply(Kernel.moved) == [.link(old: vq, new: nil)])
        _ = table.apply(.newLink(vq))
        #expect(table.links[22]?.generation != generation)
    }

    @Test("addresses come, change their flags and go")
    mutating func addresses() throws {
        let tentative = try AddressMessage(10, "2001:db8::2", 64, flags: 0xC0)
        let fixed = try AddressMessage(10, "2001:db8::2", 64)
        #expect(
            try apply(Kernel.tentative) == [
                .address(old: nil, new: tentative), .address(old: tentative, new: fixed),
            ])
        #expect(table.apply(.newAddress(fixed)) == nil)
        #expect(table.apply(.removedAddress(fixed)) == .address(old: fixed, new: nil))
        #expect(table.apply(.removedAddress(fixed)) == nil)
        #expect(table.apply(.newAddress(AddressMessage())) == nil)
        #expect(table.apply(.removedAddress(AddressMessage())) == nil)
    }

    @Test("one address with two lengths, or on two interfaces, is two")
    mutating func keys() throws {
        for message in try [
            AddressMessage(10, "192.0.2.2", 24), AddressMessage(10, "192.0.2.2", 32),
            AddressMessage(11, "192.0.2.2", 24),
        ] {
            #expect(table.apply(.newAddress(message)) == .address(old: nil, new: message))
        }
        #expect(table.addresses.count == 3)
    }

    @Test("one address with two peers is there until both went")
    mutating func peers() throws {
        var first = try AddressMessage(10, "192.0.2.2", 32)
        var second = first
        first.peer = .v4(IPv4Address(192, 0, 2, 3))
        second.peer = .v4(IPv4Address(192, 0, 2, 4))
        _ = table.apply(.newAddress(first))
        _ = table.apply(.newAddress(second))
        #expect(table.apply(.removedAddress(first)) == .address(old: first, new: nil))
        #expect(table.addresses(of: 10) == [second])
    }

    @Test("routes, rules and nexthop objects are not kept, but may change everything")
    mutating func routes() throws {
        #expect(
            try apply(Kernel.default4 + Kernel.replaced4 + Kernel.removed4)
                == [.routes, .routes, .routes])
        #expect(try apply(Kernel.ruleEvents) == [.routes, .routes])
        #expect(try apply(Kernel.nexthop) == [.routes, .routes, .routes])
        #expect(table == NetworkTable())
    }

    @Test("answers and what nobody knows change nothing")
    mutating func others() throws {
        #expect(try apply(Kernel.noRoute4 + Kernel.missingTable) == [nil, nil])
        #expect(table.apply(.other(type: 99)) == nil)
        #expect(table == NetworkTable())
    }

    @Test("two tables are the same if they know the same, whatever the way there was")
    mutating func same() throws {
        try apply(Kernel.links + Kernel.addresses)
        let first = table
        try apply(Kernel.deleted)
        #expect(!table.isSame(as: first))
        #expect(!first.isSame(as: table))
        try apply(Kernel.links + Kernel.addresses)
        #expect(table != first)
        #expect(table.isSame(as: first))
        _ = table.apply(.removedAddress(try AddressMessage(10, "192.0.2.2", 24)))
        #expect(!table.isSame(as: first))
    }
}
