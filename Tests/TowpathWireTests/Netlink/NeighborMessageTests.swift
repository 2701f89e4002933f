import Testing
import TowpathWire

@Suite("RTM_NEWNEIGH and RTM_DELNEIGH")
struct NeighborMessageTests {
    private func neighbor(
        _ text: String, _ state: NeighborMessage.State, on index: UInt32 = 10
    ) throws -> NeighborMessage {
        var message = NeighborMessage()
        let address = try IPAddress(parsing: text)
        (message.family, message.address) = (address.family, address)
        (message.index, message.state) = (index, state)
        return message
    }

    @Test("a gateway that does not answer, from the first question to the end")
    func failed() throws {
        #expect(
            try content(of: Kernel.neighborAsked4)
                == .newNeighbor(try neighbor("192.0.2.1", .incomplete)))
        let failed = try neighbor("192.0.2.1", .failed)
        #expect(try content(of: Kernel.neighborFailed4) == .newNeighbor(failed))
        #expect(failed.subject == NeighborQuery(.v4(IPv4Address(192, 0, 2, 1)), on: 10))
        #expect(
            try content(of: Kernel.neighborKnown4)
                == .newNeighbor(try neighbor("192.0.2.1", .reachable)))
    }

    @Test("one of IPv6 fails, and answers later")
    func six() throws {
        let reachable = try neighbor("2001:db8::1", .reachable)
        #expect(
            try contents(of: Kernel.neighborFailed6)
                == [
                    .newNeighbor(try neighbor("2001:db8::1", .failed)), .newNeighbor(reachable),
                ])
        #expect(try content(of: Kernel.neighborKnown6) == .newNeighbor(reachable))
    }

    @Test("what an administrator set, and deleted")
    func states() throws {
        #expect(
            try contents(of: Kernel.neighborStates4)
                == [
                    .newNeighbor(try neighbor("192.0.2.9", .permanent)),
                    .newNeighbor(try neighbor("192.0.2.8", .noARP)),
                    .newNeighbor(try neighbor("192.0.2.7", .stale)),
                ])
        let failed = try neighbor("192.0.2.9", .failed)
        #expect(
            try contents(of: Kernel.neighborRemoved4)
                == [.newNeighbor(failed), .removedNeighbor(failed)])
    }

    @Test("of one that nobody asked for, the kernel knows nothing")
    func none() throws {
        #expect(
            try content(of: Kernel.neighborNone4)
                == .acknowledgement(errno: 2, message: "Neighbour entry not found"))
    }

    @Test("the far end of a tunnel that a bridge tells of is no neighbour")
    func bridge() throws {
        guard case .newNeighbor(let message) = try content(of: Kernel.neighborBridge) else {
            Issue.record("no neighbour")
            return
        }
        #expect(message.family == nil)
        #expect(message.address == .v4(IPv4Address(192, 0, 2, 1)))
        #expect(message.index == 12)
        #expect(message.subject == nil)
    }

    @Test(
        "what each state says of whether it answers",
        arguments: [
            ([], nil), (.incomplete, nil), (.failed, false), (.reachable, true), (.stale, true),
            (.delay, true), (.probe, true), (.noARP, true), (.permanent, true),
            ([.noARP, .permanent], true), (NeighborMessage.State(rawValue: 0xFF00), nil),
        ] as [(NeighborMessage.State, Bool?)])
    func reachability(state: NeighborMessage.State, expected: Bool?) {
        #expect(state.isReachable == expected)
    }

    @Test("the fields of the body, byte by byte")
    func body() throws {
        let body: [UInt8] = [10, 1, 2, 3] + Made.number(UInt32(0x0A0B_0C0D))
        let rest = Made.number(UInt16(0x0120)) + [0x80, 1]
        let unknown = Made.attribute(2, [2, 0, 0, 0, 0, 1]) + Made.attribute(0x8009, [])
        let address = Made.attribute(1, Made.zeros(15) + [1])
        let message = Made.message(29, body + rest + unknown + address)
        guard case .removedNeighbor(let found) = try content(of: message) else {
            Issue.record("no neighbour")
            return
        }
        #expect(found.family == .ipv6)
        #expect(found.index == 0x0A0B_0C0D)
        #expect(found.state.rawValue == 0x0120)
        #expect(found.address == .v6(.loopback))
    }

    @Test("one without an address, or with one of another family, is no neighbour of ours")
    func noSubject() throws {
        let body: [UInt8] = [10] + Made.zeros(11)
        let four = Made.attribute(1, [192, 0, 2, 1])
        for message in [Made.message(28, body), Made.message(28, body + four)] {
            guard case .newNeighbor(let found) = try content(of: message) else {
                Issue.record("no neighbour")
                return
            }
            #expect(found.subject == nil)
        }
    }

    @Test("bodies, addresses and attributes of a wrong size are refused", arguments: [28, 29])
    func malformed(type: UInt16) {
        for count in 0..<12 {
            #expect(throws: NetlinkError.truncated(needed: 12, found: count)) {
                try contents(of: Made.message(type, Made.zeros(count)))
            }
        }
        for size in [0, 3, 5, 15, 17] {
            #expect(throws: NetlinkError.attributeSize(type: 1, size: size)) {
                let attribute = Made.attribute(1, Made.zeros(size))
                return try contents(of: Made.message(type, Made.zeros(12) + attribute))
            }
        }
        #expect(throws: NetlinkError.lengthTooSmall(3)) {
            try contents(of: Made.message(type, Made.zeros(12) + [3, 0, 1, 0]))
        }
    }
}
