internal import TowpathReactor
internal import TowpathWire

/// Tells what this host can reach, now and after each change.
///
///     for await path in PathMonitor() { print(path) }
///
/// Follows the kernel's announcements (rtnetlink(7)) and asks it for the way after each of them; nothing
/// is sent, and while nothing changes nothing runs. Where netlink is not to be had (a sandbox), the
/// network is looked at every 5 s, and ``Path/isPolled`` says so. All methods may be called from any task
/// or thread.
public final class PathMonitor: AsyncSequence, Sendable {
    /// What to monitor, and how.
    public struct Configuration: Sendable {
        /// The way to this host, instead of the way to everywhere. A name is looked up, and looked up
        /// again when the network changed; until then the way to everywhere stands for it.
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
        /// Zero publishes each step of a change. Default: 20 ms.
        public var coalescing: Duration = .milliseconds(20)
        /// The resolv.conf(5) that says whether there are name servers.
        public var resolverFile = "/etc/resolv.conf"
        /// What the kernel may keep of unread announcements, in bytes; the host bounds it. When it is
        /// full, all is listed anew. Default: 1 MiB.
        public var receiveBufferSize = 1_048_576

        /// The way to everywhere.
        public init() {}
    }

    private let view: Result<PathView, NetworkError>

    /// Monitors as configured.
    ///
    /// Lists the network before it returns: microseconds on most hosts, tens of milliseconds with a
    /// thousand interfaces. See ``failure`` for what can go wrong.
    public init(_ configuration: Configuration) {
        view = Result { () throws(NetworkError) in
            PathView(configuration.question, of: try .shared(configuration.options))
        }
    }

    /// Monitors the way to everywhere, to a host, or by some interfaces only.
    ///
    /// - Parameters:
    ///   - endpoint: The host; nil for everywhere.
    ///   - requiredInterfaceType: Only interfaces of this type.
    ///   - prohibitedInterfaceTypes: No interfaces of these types.
    public convenience init(
        to endpoint: Endpoint? = nil, requiredInterfaceType: InterfaceType? = nil,
        prohibitedInterfaceTypes: Set<InterfaceType> = []
    ) {
        var configuration = Configuration()
        configuration.endpoint = endpoint
        configuration.requiredInterfaceType = requiredInterfaceType
        configuration.prohibitedInterfaceTypes = prohibitedInterfaceTypes
        self.init(configuration)
    }

    deinit { try? view.get().close() }

    /// Why it cannot monitor: the namespace does not exist or may not be entered, or the process has no
    /// descriptors left. The path is unsatisfied then, and no other follows.
    public var failure: NetworkError? {
        if case .failure(let error) = view { error } else { nil }
    }

    /// The path now.
    public var currentPath: Path { (try? view.get().path) ?? Path() }

    /// The path now, and then each other one. Several tasks may iterate, each for itself; one that is
    /// slow gets the newest. Ends with its task.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// The steps of every change from now on, also of those that leave the path as it is.
    public var events: AsyncStream<NetworkEvent> {
        (try? view.get().observer.events()) ?? AsyncStream { $0.finish() }
    }

    /// Waits for a path that meets a condition, which may be the present one.
    ///
    /// Throws ``NetworkError/Code/timedOut``, `CancellationError` if the task is cancelled, and the
    /// ``failure`` of a monitor that has one.
    @discardableResult
    public func waitUntil(
        timeout: Duration? = nil, _ condition: @escaping @Sendable (Path) -> Bool
    ) async throws -> Path {
        let view = try view.get()
        let waiter = Waiter()
        let found = Locked<Path?>(nil)
        let box = FoundPath(found)
        let end = view.observe { path in
            if condition(path), box.offer(path) { waiter.finish(.ready) }
        }
        defer { end() }
        let wake = await waiter.wait(
            on: view.observer.loop, until: MonotonicClock.deadline(after: timeout))
        switch wake {
        case .ready: return box.path ?? currentPath
        case .cancelled: throw CancellationError()
        case .timedOut:
            throw NetworkError.timedOut(.setup, "no such path in time; now: \(currentPath)")
        }
    }

    /// The first path that met a condition.
    private final class FoundPath: Sendable {
        private let found: Locked<Path?>

        init(_ found: consuming Locked<Path?>) { self.found = found }

        var path: Path? { found.withLock { $0 } }

        func offer(_ path: Path) -> Bool {
            found.withLock { found in
                guard found == nil else { return false }
                found = path
                return true
            }
        }
    }

    /// See ``makeAsyncIterator()``.
    public struct Iterator: AsyncIteratorProtocol {
        /// Kept, so that a monitor that nobody else holds goes on.
        private let monitor: PathMonitor
        private var paths: AsyncStream<Path>.Iterator

        init(_ monitor: PathMonitor) {
            self.monitor = monitor
            let stream = AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
                guard let view = try? monitor.view.get() else {
                    continuation.yield(Path())
                    return continuation.finish()
                }
                let end = view.observe { continuation.yield($0) }
                continuation.onTermination = { _ in end() }
            }
            paths = stream.makeAsyncIterator()
        }

        /// The next path; nil once the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Path? {
            await paths.next(isolation: actor)
        }
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
        return options
    }
}
