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
        /// False for tests of what remains without netlink, and how often it looks then.
        package var usesNetlink = true
        package var pollInterval: Duration = .seconds(5)

        /// The way to everywhere.
        public init() {}
    }

    private let question: PathView.Question
    private let options: NetworkObserver.Options
    private let opened = Locked<Result<PathView, NetworkError>?>(nil)

    /// Monitors as configured, from the first use on. See ``failure`` for what can go wrong.
    public convenience init(_ configuration: Configuration) {
        self.init(configuration.question, configuration.options)
    }

    init(_ question: PathView.Question, _ options: NetworkObserver.Options) {
        self.question = question
        self.options = options
    }

    /// Opens at the first use, on the calling thread: the others wait.
    private var view: Result<PathView, NetworkError> {
        opened.withLock { opened in
            if let opened { return opened }
            let new = Result { () throws(NetworkError) in
                try PathView.open(question, options)
            }
            opened = new
            return new
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

    deinit { try? opened.withLock { $0 }?.get().close() }

    /// Why it cannot monitor: the namespace does not exist or may not be entered, or the process has no
    /// descriptors left. The path is unsatisfied then, and no other follows. Opens the monitor if nothing
    /// did before, as ``currentPath`` does.
    public var failure: NetworkError? {
        if case .failure(let error) = view { error } else { nil }
    }

    /// The path now.
    ///
    /// The first use of a monitor lists the network on the calling thread: some 100 µs, tens of
    /// milliseconds with a thousand interfaces, and longer while somebody makes or deletes many. Iterating
    /// and waiting do not block so.
    public var currentPath: Path { (try? view.get().path) ?? Path() }

    /// The path now, and then each other one. Several tasks may iterate, each for itself; one that is
    /// slow gets the newest. Ends with its task.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// The steps of every change from now on, also of those that leave the path as it is. 4,096 wait to
    /// be taken; the ones that come then are lost until all are, and a ``NetworkEvent/Kind/gap`` stands
    /// for them.
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
        let view = try await openedView()
        let waiter = Waiter()
        let box = FoundPath(Locked(nil))
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

    /// Opens on the pool.
    private func openedView() async throws -> PathView {
        let opened: Result<PathView, NetworkError>
        do throws(SystemError) {
            opened = try await BlockingPool.network.run { [self] in
                view.map { view in
                    _ = view.path
                    return view
                }
            }
        } catch {
            throw NetworkError(error, .setup, "no path monitor")
        }
        return try opened.get()
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

    /// Whether a name fits a pattern with `*` and `?`, as those of a ``Configuration``.
    public static func matches(_ name: String, _ pattern: String) -> Bool {
        PathRequirement.matches(name, pattern)
    }

    func openedObserver() throws(NetworkError) -> NetworkObserver { try view.get().observer }

    /// Whether what was heard equals a list that the kernel gives now: for tests.
    package var isInStep: Bool {
        guard let observer = try? view.get().observer, let client = observer.client,
            let lists = try? NetworkLists(from: client, mayPause: false), !lists.isDoubtful
        else { return false }
        return observer.table.isSame(as: lists.table)
    }

    private func observe(_ continuation: AsyncStream<Path>.Continuation) {
        let observation = Observation()
        continuation.onTermination = { _ in observation.end() }
        let begin: @Sendable () -> Void = { [self] in
            guard let view = try? view.get() else {
                continuation.yield(Path())
                return continuation.finish()
            }
            observation.begin { view.observe { continuation.yield($0) } }
        }
        // Without a thread of the pool, on the caller's.
        if (try? BlockingPool.network.submit(begin)) == nil { begin() }
    }

    /// May end before it has begun.
    private final class Observation: Sendable {
        private enum State {
            case notBegun, ended
            case begun(@Sendable () -> Void)
        }

        private let state = Locked(State.notBegun)

        func begin(_ observe: () -> @Sendable () -> Void) {
            if state.withLock({ if case .ended = $0 { true } else { false } }) { return }
            let end = observe()
            let isLate = state.withLock { state in
                guard case .notBegun = state else { return true }
                state = .begun(end)
                return false
            }
            if isLate { end() }
        }

        func end() {
            let end = state.withLock { state -> (@Sendable () -> Void)? in
                defer { state = .ended }
                if case .begun(let end) = state { return end }
                return nil
            }
            end?()
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
                monitor.observe(continuation)
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
        options.usesNetlink = usesNetlink
        options.pollInterval = pollInterval
        return options
    }
}
