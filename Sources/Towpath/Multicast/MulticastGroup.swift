internal import TowpathReactor

/// Multicast groups on one port: hears what is sent to them, and sends to them.
///
/// It hears only the groups that it joined, on the interfaces where it joined them, whatever other
/// programs on this host join; and what is sent to its port at this host's own addresses, such as
/// answers. Other programs may use the same port. Joined when `init` returns; what arrives waits in
/// the kernel, which drops what its buffer cannot hold. All methods may be called from any task. One
/// that is dropped is closed.
public final class MulticastGroup: Sendable {
    private let socket: MulticastSocket

    /// The groups.
    public let groups: [IPAddress]

    /// The interfaces on which it joined and sends, by name.
    public let interfaces: [String]

    /// The address and port it is bound to: every address of this host.
    public let localEndpoint: Endpoint

    /// The port.
    public var port: UInt16 { localEndpoint.port ?? 0 }

    /// Joins groups of one family.
    ///
    /// - Parameters:
    ///   - groups: Multicast addresses, all IPv4 or all IPv6, without zones.
    ///   - port: The groups' port; 0 lets the kernel choose.
    ///   - sources: Whose datagrams to hear (RFC 4607); none means anybody's.
    ///   - interface: The name of the only interface to join on. Nil joins on every interface that is
    ///     up and takes part in multicast, rather than on the one of the default route; loopback does
    ///     not. See ``interfaces`` for those that could be joined on, at least one.
    ///   - hopLimit: Over how many routers what is sent to a group may go (IP_MULTICAST_TTL), 1 for
    ///     the link and 0 for this host.
    ///   - loopback: Whether this host, and so this object, hears what is sent here
    ///     (IP_MULTICAST_LOOP).
    ///
    /// Throws ``NetworkError/Code/invalidEndpoint`` for what are no groups of one family,
    /// ``NetworkError/Code/unreachable`` where there is no such interface, or none at all, and
    /// ``NetworkError/Code/addressUnavailable`` if the port belongs to somebody who does not share it.
    public init(
        joining groups: [IPAddress], port: UInt16, from sources: [IPAddress] = [],
        interface: String? = nil, hopLimit: Int = 1, loopback: Bool = true
    ) throws(NetworkError) {
        let family = try Self.family(groups, sources)
        guard (0...255).contains(hopLimit) else {
            throw NetworkError(
                .optionFailed, .setup, "hopLimit \(hopLimit): out of range (0 to 255)")
        }
        let candidates = try Self.indices(interface)
        do throws(SystemError) {
            let descriptor = try Descriptor.socket(family, .datagram)
            try descriptor.prepareForGroups(
                family, hopLimit: Int32(hopLimit), loopback: loopback)
            let any: IPAddress = family == .ipv4 ? .v4(.any) : .v6(.any)
            if let address = SocketAddress(any, port: port) { try descriptor.bind(to: address) }
            let joined = try Self.join(groups, sources, on: candidates, descriptor)
            let bound = try descriptor.localAddress()
            self.groups = groups
            interfaces = joined.map { SocketAddress.interfaceName(of: $0) }
            localEndpoint = .hostPort(host: Host(any), port: bound.port)
            socket = try MulticastSocket(
                descriptor, family, port: bound.port, interfaces: joined,
                groups: groups.compactMap { SocketAddress($0, port: bound.port) })
        } catch {
            throw NetworkError(error, .listen, "cannot join \(groups) on port \(port)")
        }
    }

    deinit { close() }

    private static func family(
        _ groups: [IPAddress], _ sources: [IPAddress]
    ) throws(NetworkError) -> SocketAddress.Family {
        func refuse(_ reason: String) -> NetworkError {
            NetworkError(.invalidEndpoint, .setup, reason)
        }
        guard let first = groups.first else { throw refuse("no group to join") }
        for group in groups where !group.isMulticast {
            throw refuse("\(group) is no multicast address")
        }
        for source in sources where source.isMulticast {
            throw refuse("\(source) is a group, which sends nothing")
        }
        for address in groups + sources {
            guard address.family == first.family else {
                throw refuse("\(first) and \(address) are of two families: join them apart")
            }
            if case .v6(let address) = address, address.zone != nil {
                throw refuse("\(address): name the interface instead of a zone")
            }
        }
        return first.family == .ipv4 ? .ipv4 : .ipv6
    }

    private static func indices(_ interface: String?) throws(NetworkError) -> [UInt32] {
        guard let interface else {
            let all: [UInt32]
            do throws(SystemError) { all = try Descriptor.multicastInterfaces() } catch {
                throw NetworkError(error, .setup, "no list of interfaces")
            }
            guard !all.isEmpty else {
                throw NetworkError(
                    .unreachable, .setup, "no interface is up and takes part in multicast")
            }
            return all
        }
        guard let index = SocketAddress.interfaceIndex(of: interface), index != 0 else {
            throw NetworkError(.unreachable, .setup, "\(interface): there is no such interface")
        }
        return [index]
    }

    /// The interfaces that could be joined on; throws the last one's reason if none could.
    private static func join(
        _ groups: [IPAddress], _ sources: [IPAddress], on interfaces: [UInt32],
        _ socket: borrowing Descriptor
    ) throws(SystemError) -> [UInt32] {
        var joined: [UInt32] = []
        var failure: SystemError?
        for interface in interfaces {
            do throws(SystemError) {
                for group in groups.compactMap({ SocketAddress($0, port: 0) }) {
                    for source in sources.isEmpty
                        ? [nil] : sources.map({ SocketAddress($0, port: 0) })
                    {
                        try socket.join(group, from: source, on: interface)
                    }
                }
                joined.append(interface)
            } catch {
                failure = error
            }
        }
        if joined.isEmpty, let failure { throw failure }
        return joined
    }

    // MARK: Receiving

    /// Waits for the next datagram. Its ``Datagram/localEndpoint`` is the group that it was sent to, of
    /// a link-local IPv6 group with the interface as its zone, or this host's own address.
    ///
    /// One receive at a time.
    public func receive(timeout: Duration? = nil) async throws -> Datagram {
        try await socket.receive(until: MonotonicClock.deadline(after: timeout))
    }

    /// The datagrams as they come, until this object is closed: then iterating throws
    /// ``NetworkError/Code/closed``.
    public var messages: Messages { Messages(group: self) }

    /// The datagrams of a group, pulled one at a time.
    public struct Messages: AsyncSequence, Sendable {
        fileprivate let group: MulticastGroup

        /// An iterator over the datagrams to come.
        public func makeAsyncIterator() -> Iterator { Iterator(group: group) }

        /// Pulls the datagrams.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let group: MulticastGroup

            /// The next datagram.
            public mutating func next() async throws -> Datagram? { try await group.receive() }

            /// The next datagram.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws -> Datagram? {
                try await group.socket.receive(until: .max)
            }
        }
    }

    // MARK: Sending

    /// Sends one datagram to every group, on every interface it joined on. Returns when the kernel has
    /// taken it.
    ///
    /// An interface that fails does not keep the datagram from the others; its error is thrown then.
    public func send(_ bytes: [UInt8], timeout: Duration? = nil) async throws {
        try await socket.send(bytes, until: MonotonicClock.deadline(after: timeout))
    }

    /// Sends one datagram to one endpoint: an answer to who sent one, or to one group on every
    /// interface.
    ///
    /// Throws ``NetworkError/Code/invalidEndpoint`` for what is no address of the groups' family.
    public func send(
        _ bytes: [UInt8], to endpoint: Endpoint, timeout: Duration? = nil
    ) async throws {
        guard let host = endpoint.host?.address, let port = endpoint.port,
            host.family == groups.first?.family, let address = SocketAddress(host, port: port)
        else {
            throw NetworkError(
                .invalidEndpoint, .send, "\(endpoint) is no address of the groups' family")
        }
        let deadline = MonotonicClock.deadline(after: timeout)
        try await socket.send(bytes, to: address, isGroup: host.isMulticast, until: deadline)
    }

    /// Leaves the groups. Calls that wait end with ``NetworkError/Code/closed``.
    public func close() { socket.close() }
}

extension IPAddress {
    fileprivate var isMulticast: Bool {
        switch self {
        case .v4(let address): address.isMulticast
        case .v6(let address): address.isMulticast
        }
    }
}
