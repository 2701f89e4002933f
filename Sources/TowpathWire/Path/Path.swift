/// What this host can reach, or a connection's way, at one moment.
///
/// "Satisfied" means that a connection attempt makes sense, not that the Internet works: the kernel has a
/// route, its interface is up, and there is an address to send from. Two paths are equal if they say the
/// same; counters and lifetimes are not part of one.
public struct Path: Hashable, Sendable {
    /// Whether connections can be opened.
    public enum Status: String, Hashable, Sendable {
        /// There is a way for at least one address family.
        case satisfied
        /// There is none; see ``Path/unsatisfiedReason`` and ``Path/obstacle``.
        case unsatisfied
        /// There would be one if its interface were brought up by use: it is dormant (RFC 2863).
        case requiresConnection
    }

    /// Network.framework's reasons, of which Linux has these.
    public enum UnsatisfiedReason: String, Hashable, Sendable {
        /// See ``Path/obstacle`` for what is in the way.
        case notAvailable
        /// The way leads through a tunnel that is not connected.
        case vpnInactive
    }

    /// What stands in the way, the thing nearest to working.
    public enum Obstacle: Hashable, Sendable {
        /// The interface waits to be used.
        case dormant(String)
        /// The cable is out, or the other side is down.
        case noCarrier(String)
        /// Its address is not known to be unique yet (RFC 4862 §5.4).
        case addressTentative(String)
        /// Another host has its address.
        case addressDuplicate(String)
        /// It has no address that is good for more than its own link.
        case noAddress(String)
        /// It was switched off.
        case interfaceDown(String)
        /// What is required or prohibited leaves out every interface that leads there.
        case interfaceExcluded
        /// The interface that is required does not exist.
        case interfaceMissing(String)
        /// A route or rule of the administrator answers "unreachable".
        case unreachable
        /// A route or rule of the administrator forbids it.
        case prohibited
        /// A route of the administrator throws packets away.
        case blackhole
        /// No route leads there.
        case noRoute
    }

    /// One network interface.
    public struct Interface: Hashable, Sendable {
        /// Such as `eth0`.
        public let name: String
        /// The kernel's number. A new interface gets a new one, even under an old name.
        public let index: UInt32
        /// What kind of network it belongs to.
        public let type: InterfaceType
        /// The largest packet, in bytes.
        public let mtu: Int
        /// The addresses that packets can leave from.
        public let addresses: [IPAddress]

        package init(
            name: String, index: UInt32, type: InterfaceType, mtu: Int, addresses: [IPAddress]
        ) {
            self.name = name
            self.index = index
            self.type = type
            self.mtu = mtu
            self.addresses = addresses
        }
    }

    /// What came out for one address family.
    public enum Verdict: Hashable, Sendable {
        /// Packets leave through this interface, from this address.
        case usable(interface: String, source: IPAddress)
        /// They do not.
        case unusable(Obstacle)
    }

    /// Whether connections can be opened.
    public package(set) var status = Status.unsatisfied
    /// Why not; nil while satisfied.
    public package(set) var unsatisfiedReason: UnsatisfiedReason?
    /// What is in the way; nil while satisfied.
    public package(set) var obstacle: Obstacle?
    /// The interfaces that lead out and can be used, in the kernel's order of preference: the one that
    /// packets take now stands first.
    public package(set) var interfaces: [Interface] = []
    /// The routers on the way; none where the other side is on the link. Link-local ones have a zone.
    public package(set) var gateways: [IPAddress] = []
    /// Whether the first of the ``gateways`` answers on its link: false if it did not when the kernel last
    /// asked (ARP, RFC 4861), nil where there is none, where nobody knows, or where the monitor does not
    /// ask for it. The kernel asks when packets are sent, for some 3 s. No part of the ``status``.
    public package(set) var isGatewayReachable: Bool?
    /// What came out for IPv4.
    public package(set) var ipv4 = Verdict.unusable(.noRoute)
    /// What came out for IPv6.
    public package(set) var ipv6 = Verdict.unusable(.noRoute)
    /// Whether a name server is configured and can be reached by a route.
    public package(set) var supportsDNS = false
    /// Whether using it costs more than usual: a mobile network, or what the user said.
    public package(set) var isExpensive = false
    /// Whether the user said that it is to be used sparingly.
    public package(set) var isConstrained = false
    /// Whether the user said that it is to be used for the most important things only.
    public package(set) var isUltraConstrained = false
    /// Whether one of several ways of the same route is broken: the kernel still sends a part there.
    public package(set) var isDegraded = false
    /// The address that packets leave from, of a path to one destination.
    public package(set) var localEndpoint: Endpoint?
    /// The destination, of a path to one.
    public package(set) var remoteEndpoint: Endpoint?
    /// Whether changes are looked for from time to time only, since the kernel tells of none here.
    public package(set) var isPolled = false

    package init() {}

    /// Whether there is a way for IPv4.
    public var supportsIPv4: Bool { ipv4.isUsable }

    /// Whether there is a way for IPv6.
    public var supportsIPv6: Bool { ipv6.isUsable }

    /// Whether an interface of this type leads out.
    public func usesInterfaceType(_ type: InterfaceType) -> Bool {
        interfaces.contains { $0.type == type }
    }
}

extension Path.Verdict {
    /// Whether packets of this family can leave.
    public var isUsable: Bool {
        switch self {
        case .usable: true
        case .unusable: false
        }
    }
}

extension Path.Obstacle: CustomStringConvertible {
    /// What is in the way, in a few words.
    public var description: String {
        switch self {
        case .dormant(let name): "\(name) is dormant"
        case .noCarrier(let name): "no carrier on \(name)"
        case .addressTentative(let name): "the address of \(name) is still being checked"
        case .addressDuplicate(let name): "another host has the address of \(name)"
        case .noAddress(let name): "no usable address on \(name)"
        case .interfaceDown(let name): "\(name) is down"
        case .interfaceExcluded:
            "the required and prohibited interfaces leave none that leads there"
        case .interfaceMissing(let name): "there is no interface \(name)"
        case .unreachable: "a route or rule answers unreachable"
        case .prohibited: "a route or rule prohibits it"
        case .blackhole: "a route discards the packets"
        case .noRoute: "no route"
        }
    }

    /// The nearer to working, the smaller.
    package var distance: Int {
        switch self {
        case .dormant: 0
        case .noCarrier: 1
        case .addressTentative: 2
        case .addressDuplicate: 3
        case .noAddress: 4
        case .interfaceDown: 5
        case .interfaceExcluded: 6
        case .interfaceMissing: 7
        case .unreachable: 8
        case .prohibited: 9
        case .blackhole: 10
        case .noRoute: 11
        }
    }
}

extension Path: CustomStringConvertible {
    /// One line, for logs: `satisfied via eth0 (wiredEthernet) v4 v6 dns gw 192.0.2.1`.
    public var description: String {
        var words = [status.rawValue]
        if status == .satisfied, let first = interfaces.first {
            words.append("via \(first.name) (\(first.type.rawValue))")
        }
        if let obstacle { words.append("(\(obstacle))") }
        if supportsIPv4 { words.append("v4") }
        if supportsIPv6 { words.append("v6") }
        if supportsDNS { words.append("dns") }
        if !gateways.isEmpty {
            words.append("gw " + gateways.map(\.description).joined(separator: " "))
        }
        if isGatewayReachable == false { words.append("(gateway does not answer)") }
        if isExpensive { words.append("expensive") }
        if isConstrained { words.append("constrained") }
        if isUltraConstrained { words.append("ultra-constrained") }
        if isDegraded { words.append("degraded") }
        if isPolled { words.append("polled") }
        return words.joined(separator: " ")
    }

    /// How the verdict came about, a line for each address family.
    public var explanation: String {
        [("IPv4", ipv4), ("IPv6", ipv6)].map { family, verdict in
            switch verdict {
            case .usable(let interface, let source):
                "\(family): the route leads through \(interface), from \(source)"
            case .unusable(let obstacle): "\(family): \(obstacle)"
            }
        }.joined(separator: "\n")
    }
}
