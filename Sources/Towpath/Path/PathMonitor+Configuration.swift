internal import TowpathWire

extension PathMonitor {
    /// What to monitor, and how.
    public struct Configuration: Sendable {
        /// The way to this host, instead of the way to everywhere. A name is looked up, and looked up
        /// again when the network changed. Until then, and where it is unknown, the way to everywhere
        /// stands for it in ``PathMonitor/currentPath``; those who iterate or wait hear of a satisfied
        /// path only once the name was looked up.
        public var endpoint: Endpoint?
        /// Only this interface, by name.
        public var requiredInterface: String?
        /// Only interfaces of this type.
        public var requiredInterfaceType: InterfaceType?
        /// No interfaces of these types.
        public var prohibitedInterfaceTypes: Set<InterfaceType> = []
        /// None of these interfaces, by name.
        public var prohibitedInterfaces: Set<String> = []
        /// Only this address family.
        public var ipVersion: AddressFamily?
        /// Interfaces that cost more than usual, by pattern: `wwan*`. Cellular ones do anyway.
        public var expensiveInterfaces: [String] = []
        /// Interfaces to be used sparingly, by pattern.
        public var constrainedInterfaces: [String] = []
        /// Interfaces for the most important things only, by pattern.
        public var ultraConstrainedInterfaces: [String] = []
        /// Asks as for packets from this address, with this mark (SO_MARK), of this user.
        public var source: IPAddress?
        /// See ``source``.
        public var mark: UInt32?
        /// See ``source``.
        public var user: UInt32?
        /// The file of a network namespace, such as `/run/netns/blue`; nil for the process's own. To
        /// enter another one needs CAP_SYS_ADMIN.
        public var namespace: String?
        /// How long it has to be quiet before a path is published; five times that at the latest.
        /// Zero publishes each step of a change; an hour is the most. Default: 20 ms.
        public var coalescing: Duration = .milliseconds(20)
        /// The resolv.conf(5) that says whether there are name servers.
        public var resolverFile = "/etc/resolv.conf"
        /// What the kernel may keep of unread announcements, in bytes; the host bounds it. When it is
        /// full, all is listed anew. Default: 1 MiB.
        public var receiveBufferSize = 1_048_576
        /// Whether ``Path/isGatewayReachable`` is asked for and followed. The kernel then announces all
        /// neighbours, of which a busy network has many. Default: false.
        public var watchesGateways = false
        /// False for tests of what remains without netlink, and how often it looks then.
        package var usesNetlink = true
        package var pollInterval: Duration = .seconds(5)

        /// The way to everywhere.
        public init() {}
    }
}

extension PathMonitor.Configuration {
    var question: PathView.Question {
        var requirement = PathRequirement()
        requirement.interface = requiredInterface
        requirement.type = requiredInterfaceType
        requirement.prohibitedTypes = prohibitedInterfaceTypes
        requirement.prohibitedInterfaces = prohibitedInterfaces
        requirement.family = ipVersion
        requirement.expensive = expensiveInterfaces
        requirement.constrained = constrainedInterfaces
        requirement.ultraConstrained = ultraConstrainedInterfaces
        requirement.source = source
        requirement.mark = mark
        requirement.user = user
        return PathView.Question(requirement: requirement, endpoint: endpoint)
    }

    var options: NetworkObserver.Options {
        var options = NetworkObserver.Options()
        options.namespace = namespace
        options.coalescing = coalescing
        options.resolverFile = resolverFile
        options.receiveBuffer = Int32(clamping: receiveBufferSize)
        options.watchesGateways = watchesGateways
        options.usesNetlink = usesNetlink
        options.pollInterval = pollInterval
        return options
    }
}
