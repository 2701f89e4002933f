import Testing
import TowpathWire

@Suite("RTM_NEWLINK and RTM_DELLINK")
struct LinkMessageTests {
    /// A veth interface of the fixtures that can be used.
    private func veth(_ index: UInt32, _ name: String, lower: UInt32) -> LinkMessage {
        LinkMessage(index, name) {
            $0.flags = LinkMessage.Flags(rawValue: 0x11043)
            ($0.operationalState, $0.hasCarrier) = (.up, true)
            ($0.carrierUpCount, $0.carrierDownCount) = (1, 1)
            ($0.kind, $0.lower, $0.lowerIsElsewhere) = ("veth", lower, true)
        }
    }

    @Test("the loopback and veth interfaces of a list")
    func list() throws {
        let lo = LinkMessage(1, "lo") {
            $0.flags = LinkMessage.Flags(rawValue: 0x10049)
            ($0.hardwareType, $0.mtu) = (772, 65_536)
            ($0.operationalState, $0.hasCarrier) = (.unknown, true)
            ($0.carrierUpCount, $0.carrierDownCount) = (0, 0)
        }
        let expected: [RouteNetlink] = [
            .newLink(lo), .newLink(veth(10, "w0", lower: 2)), .newLink(veth(11, "w1", lower: 3)),
            .done(errno: 0),
        ]
        #expect(try contents(of: Kernel.links) == expected)
        #expect(lo.flags.isSuperset(of: [.up, .loopback, .running, .lowerUp]))
        #expect(!lo.flags.contains(.pointToPoint))
    }

    @Test("tun, tap, bridge, its port, macvlan and vxlan interfaces of a list")
    func kinds() throws {
        let tun = LinkMessage(2, "tun9") {
            $0.flags = [.up, .pointToPoint, LinkMessage.Flags(rawValue: 0x1080)]
            ($0.hardwareType, $0.kind) = (65_534, "tun")
            ($0.operationalState, $0.hasCarrier) = (.down, false)
            ($0.carrierUpCount, $0.carrierDownCount) = (0, 1)
        }
        let tap = LinkMessage(3, "tap9") {
            $0.flags = LinkMessage.Flags(rawValue: 0x1003)
            ($0.operationalState, $0.hasCarrier, $0.kind) = (.down, false, "tun")
            ($0.carrierUpCount, $0.carrierDownCount) = (0, 1)
        }
        func up(_ index: UInt32, _ name: String, _ kind: String, changes: UInt32) -> LinkMessage {
            LinkMessage(index, name) {
                $0.flags = LinkMessage.Flags(rawValue: 0x11043)
                ($0.operationalState, $0.hasCarrier, $0.kind) = (.up, true, kind)
                ($0.carrierUpCount, $0.carrierDownCount) = (changes, changes)
            }
        }
        let bridge = up(20, "br0", "bridge", changes: 2)
        var port = up(21, "vp", "veth", changes: 1)
        (port.lower, port.master) = (22, 20)
        var macvlan = up(23, "mv0", "macvlan", changes: 0)
        macvlan.lower = 10
        var vxlan = up(26, "vx0", "vxlan", changes: 0)
        (vxlan.mtu, vxlan.operationalState) = (1_450, .unknown)
        #expect(
            try contents(of: Kernel.kinds)
                == [tun, tap, bridge, port, macvlan, vxlan].map(RouteNetlink.newLink))
    }

    @Test("an interface that comes up: the carrier is told before the operational state")
    func up() throws {
        var first = veth(10, "w0", lower: 2)
        first.flags = LinkMessage.Flags(rawValue: 0x11003)
        (first.change, first.operationalState) = (1, .down)
        #expect(
            try contents(of: Kernel.up) == [.newLink(first), .newLink(veth(10, "w0", lower: 2))])
        #expect(!first.isUsable)
    }

    @Test("a new name comes with the old index, and no flag has changed")
    func renamed() throws {
        guard case .newLink(let link) = try content(of: Kernel.renamed) else {
            Issue.record("no link")
            return
        }
        #expect(link.name == "renamed")
        #expect(link.index == 11)
        #expect(link.change == 0)
        #expect(!link.flags.contains(.up))
    }

    @Test("what a bridge tells of its ports has a family")
    func bridgePort() throws {
        let port = LinkMessage(21, "vp") {
            $0.family = 7
            $0.flags = LinkMessage.Flags(rawValue: 0x11043)
            ($0.operationalState, $0.master, $0.lower) = (.up, 20, 22)
        }
        #expect(try content(of: Kernel.bridgePort) == .newLink(port))
        #expect(try content(of: Kernel.bridgePortLeft) == .removedLink(port))
    }

    @Test("one that moved away tells its index there")
    func moved() throws {
        let expected = LinkMessage(22, "vq") {
            $0.flags = LinkMessage.Flags(rawValue: 0x1002)
            ($0.change, $0.newIndex) = (.max, 22)
            ($0.operationalState, $0.hasCarrier) = (.down, false)
            ($0.carrierUpCount, $0.carrierDownCount) = (1, 2)
            ($0.kind, $0.lower) = ("veth", 21)
        }
        #expect(try content(of: Kernel.moved) == .removedLink(expected))
    }

    @Test("a deleted one goes after its addresses")
    func deleted() throws {
        let kinds = try contents(of: Kernel.deleted).map { content in
            switch content {
            case .removedRoute: "route"
            case .removedAddress: "address"
            case .removedLink(let link): "link \(link.index) \(link.newIndex ?? 0)"
            default: "\(content)"
            }
        }
        #expect(kinds == ["route", "route", "address", "address", "route", "link 11 0"])
    }

    @Test(
        "BR-076: only a carrier with the state up or unknown is usable",
        arguments: [
            ("withoutCarrier", "w1", 2, false), ("switchedOff", "w0", 2, false),
            ("emptyBridge", "br0", 0, true), ("tunOpened", "tun9", 6, true),
            ("tunClosed", "tun9", 2, false), ("macvlanLowerDown", "mv0", 3, false),
            ("dormant", "w1", 5, false), ("testing", "w1", 4, false),
        ] as [(String, String, UInt8, Bool)])
    func states(fixture: String, name: String, state: UInt8, isUsable: Bool) throws {
        guard case .newLink(let link) = try content(of: Kernel.named(fixture)) else {
            Issue.record("no link")
            return
        }
        #expect(link.name == name)
        #expect(link.operationalState?.rawValue == state)
        #expect(link.isUsable == isUsable)
        #expect(link.isDormant == (state == 5))
        #expect(link.hasCarrier == link.flags.contains(.lowerUp))
    }

    @Test("BR-076: without an operational state the flags decide")
    func noState() throws {
        #expect(LinkMessage(1, "a") { $0.flags = [.up, .lowerUp] }.isUsable)
        #expect(!LinkMessage(1, "a") { $0.flags = [.up] }.isUsable)
        #expect(!LinkMessage(1, "a") { $0.flags = [.lowerUp] }.isUsable)
        #expect(!LinkMessage(1, "a") { $0.flags = [.lowerUp, .dormant] }.isDormant)
    }

    @Test("the bus of a modem is told, and unknown states and attributes are passed over")
    func made() throws {
        let body = Made.zeros(4) + Made.number(UInt32(4)) + Made.zeros(8)
        let attributes =
            Made.attribute(3, Array("wwan0\0".utf8)) + Made.attribute(57, Array("wwan\0".utf8))
            + Made.attribute(16, [9]) + Made.attribute(999, [1, 2, 3])
            + Made.attribute(0x8012, Made.attribute(2, [1]) + Made.attribute(1, Array("x".utf8)))
        let expected = LinkMessage(4, "wwan0") {
            ($0.hardwareType, $0.mtu, $0.parentBus, $0.kind) = (0, 0, "wwan", "x")
        }
        #expect(try content(of: Made.message(16, body + attributes)) == .newLink(expected))
    }

    @Test(
        "numbers that are too short are refused",
        arguments: [UInt16(4), 5, 10, 16, 33, 47, 48, 49])
    func shortNumbers(type: UInt16) {
        #expect(throws: NetlinkError.attributeSize(type: type, size: 0)) {
            try contents(of: Made.message(16, Made.zeros(16) + Made.attribute(type, [])))
        }
    }

    @Test("a body that is too short is refused", arguments: [16, 17] as [UInt16])
    func short(type: UInt16) {
        #expect(throws: NetlinkError.truncated(needed: 16, found: 15)) {
            try contents(of: Made.message(type, Made.zeros(15)))
        }
    }

    @Test("what a wireless card tells of itself is no news of the interface")
    func wireless() throws {
        // ifi_change is 0, and but for the name there is nothing: as wireless_send_event makes it.
        let body =
            [0, 0] + Made.number(UInt16(1)) + Made.number(UInt32(3))
            + Made.number(UInt32(0x11043)) + Made.zeros(4)
        let event = Made.message(
            16,
            body + Made.attribute(3, Array("wlan0\0".utf8)) + Made.attribute(11, Made.zeros(16)))
        #expect(try content(of: event) == .other(type: 16))
    }
}
