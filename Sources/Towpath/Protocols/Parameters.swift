/// The choice of path, and what belongs to any transport: interface, local endpoint, service class,
/// buffers, name resolution.
///
/// What a parameter asks for is applied when the connection or listener opens, and fails it with
/// ``NetworkError/Code/optionFailed`` if the kernel refuses it.
public struct Parameters: Sendable {
    /// What the traffic is for: a DSCP (RFC 2474) and a queueing priority of this host (SO_PRIORITY).
    public enum ServiceClass: Sendable, CaseIterable {
        /// The default: DSCP 0, priority 0.
        case bestEffort
        /// Bulk that yields to all else: LE (RFC 8622), priority 1.
        case background
        /// Interactive data a person waits for: AF21 (RFC 4594), priority 2.
        case responsiveData
        /// Control of calls and sessions: CS5 (RFC 4594), priority 4.
        case signaling
        /// Video of a call: AF41 (RFC 4594), priority 5.
        case interactiveVideo
        /// Voice of a call: EF (RFC 3246), priority 6.
        case interactiveVoice
    }

    package var requiredInterface: String?
    package var localEndpoint: Endpoint?
    package var serviceClass: ServiceClass?
    package var hopLimit: Int?
    package var sendBufferSize: Int?
    package var receiveBufferSize: Int?
    package var addressReuse: Bool?
    package var portReuse: Bool?
    package var ipv6Only: Bool?
    package var mark: UInt32?
    package var ipVersion: AddressFamily?
    package var resolutions: [String: [IPAddress]] = [:]
    package var requiredInterfaceType: InterfaceType?
    package var prohibitedInterfaceTypes: Set<InterfaceType> = []
    package var prohibitedInterfaces: Set<String> = []
    package var prohibitsExpensivePaths = false
    package var prohibitsConstrainedPaths = false
    package var expensiveInterfaces: [String] = []
    package var constrainedInterfaces: [String] = []
    package var waitsForConnectivity = true
    package var unixSocketMode: UInt32?
    package var backlog: Int?

    /// The parameters' defaults.
    public init() {}

    /// Uses this interface only (SO_BINDTODEVICE). Connections fail clearly once it is gone.
    public func requiredInterface(_ name: String) -> Parameters {
        with { $0.requiredInterface = name }
    }

    /// Sends from this address and port; port 0 lets the kernel choose. For connections only.
    public func localEndpoint(_ endpoint: Endpoint) -> Parameters {
        with { $0.localEndpoint = endpoint }
    }

    /// Marks the traffic (IP_TOS or IPV6_TCLASS, and SO_PRIORITY).
    public func serviceClass(_ serviceClass: ServiceClass) -> Parameters {
        with { $0.serviceClass = serviceClass }
    }

    /// Over how many routers a packet may go, 1 to 255 (IP_TTL, IPV6_UNICAST_HOPS).
    public func hopLimit(_ count: Int) -> Parameters { with { $0.hopLimit = count } }

    /// The kernel's send buffer in bytes (SO_SNDBUF; the kernel takes twice that, for its own
    /// bookkeeping). More than net.core.wmem_max fails. Default: the kernel adapts it.
    public func sendBufferSize(_ byteCount: Int) -> Parameters {
        with { $0.sendBufferSize = byteCount }
    }

    /// The kernel's receive buffer in bytes (SO_RCVBUF; the kernel takes twice that, for its own
    /// bookkeeping). More than net.core.rmem_max fails. Default: the kernel adapts it.
    public func receiveBufferSize(_ byteCount: Int) -> Parameters {
        with { $0.receiveBufferSize = byteCount }
    }

    /// Whether a local address may be bound while old connections linger on it (SO_REUSEADDR).
    /// Default: true for TCP listeners, otherwise false.
    public func addressReuse(_ enabled: Bool) -> Parameters { with { $0.addressReuse = enabled } }

    /// Whether several sockets of one user may bind the same address and port (SO_REUSEPORT).
    /// Default: false, so that a second server is noticed.
    public func portReuse(_ enabled: Bool) -> Parameters { with { $0.portReuse = enabled } }

    /// Whether a listener on an IPv6 address leaves IPv4 alone (IPV6_V6ONLY). Default: false, so `::`
    /// accepts both. An IPv4 socket has no such option.
    public func ipv6Only(_ enabled: Bool) -> Parameters { with { $0.ipv6Only = enabled } }

    /// Marks packets for this host's policy routing and firewall (SO_MARK); needs CAP_NET_ADMIN or
    /// CAP_NET_RAW.
    public func mark(_ mark: UInt32) -> Parameters { with { $0.mark = mark } }

    /// Uses addresses of this family only; nil for both. Default: both.
    public func ipVersion(_ family: AddressFamily?) -> Parameters { with { $0.ipVersion = family } }

    /// Gives the addresses of a host name by hand, instead of asking the resolver: for tests and for
    /// pinned addresses. An empty list makes the name unknown. Upper and lower case are the same, and
    /// so is a dot at the end. For connections only.
    public func resolve(_ name: String, to addresses: [IPAddress]) -> Parameters {
        with { $0.resolutions[Self.key(name)] = addresses }
    }

    /// The addresses that were given for a name.
    func resolution(_ name: String) -> [IPAddress]? { resolutions[Self.key(name)] }

    private static func key(_ name: String) -> String {
        (name.hasSuffix(".") ? String(name.dropLast()) : name).lowercased()
    }

    /// The permissions of the file that a Unix listener makes, such as `0o660`; they are set before
    /// anybody can connect. Default: by the process's umask(2).
    public func unixSocketMode(_ mode: UInt32) -> Parameters { with { $0.unixSocketMode = mode } }

    /// How many connections may wait to be accepted, listen(2). The host's net.core.somaxconn bounds
    /// it. For listeners of streams only. Default: 4,096.
    public func backlog(_ count: Int) -> Parameters { with { $0.backlog = max(count, 1) } }

    private func with(_ change: (inout Parameters) -> Void) -> Parameters {
        var copy = self
        change(&copy)
        return copy
    }
}
