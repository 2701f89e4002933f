internal import TowpathReactor
internal import TowpathWire

/// Follows the network of one namespace: hears what the kernel announces, keeps the table, and asks anew
/// after each change what the paths are.
///
/// The event loop reads the announcements. Questions are asked on the blocking pool, and not under the lock
/// that the loop takes: the kernel answers many only once it has its lock of all interfaces, which one who
/// makes or deletes many may hold for long.
///
/// Announcements are lost when they come faster than they are read (ENOBUFS), and IPv4 routes go without
/// one: the announcements only say when to look, the kernel's answers say what there is.
final class NetworkObserver: EventHandler {
    /// What an observer is made with.
    struct Options: Hashable, Sendable {
        /// The file of a network namespace; nil for the process's own.
        var namespace: String?
        /// How long it has to be quiet before paths are published; five times that at the latest.
        var coalescing: Duration = .milliseconds(20)
        /// What the kernel may keep unread, in bytes.
        var receiveBuffer: Int32 = 1_048_576
        /// resolv.conf(5) and what stands for it where systemd-resolved answers on this host.
        var resolverFile = "/etc/resolv.conf"
        var upstreamResolverFile = "/run/systemd/resolve/resolv.conf"
        /// Whether the gateways of paths are asked for and followed.
        var watchesGateways = false
        /// False for what tests see of a host without netlink.
        var usesNetlink = true
        /// How often the network is looked at without netlink.
        var pollInterval: Duration = .seconds(5)
    }

    struct State: ~Copyable {
        var events: Descriptor?
        var token: Token?
        var lists: NetworkLists
        var views: [ObjectIdentifier: WeakView] = [:]
        var listeners: [ObjectIdentifier: WeakQueue] = [:]
        /// When the first change came that is not published yet.
        var changedSince: UInt64?
        var timer: TimerID?
        var pollTimer: TimerID?
        /// When a route or the patience with a doubtful list ends.
        var expiryTimer: TimerID?
        var expiry: UInt64 = 0
        /// When all is listed anew, after a pause.
        var resyncTimer: TimerID?
        var resyncCause: String?
        var isResynchronizing = false
        /// A deadline goes on reading where the last turn's share ended.
        var isDrainScheduled = false
        var resyncPause: UInt64 = 0
        var lastResync: UInt64 = 0
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var types: [UInt32: (name: String, type: InterfaceType?)] = [:]
        var rulesChanged = false
        /// How many routes were announced: a table may have come with the last one.
        var newRouteCount: UInt64 = 0
        /// A thread of the pool evaluates, and has to do so once more.
        var isEvaluating = false
        var needsEvaluation = false
        var isClosed = false
        var evaluationCount: UInt64 = 0
        /// Whose announcements matter, by view.
        var gateways: [ObjectIdentifier: WatchedGateway] = [:]
    }

    struct WeakView {
        weak var view: PathView?
    }

    struct WeakQueue {
        weak var queue: EventQueue?
    }

    let loop: EventLoop
    let options: Options
    /// Nil where the kernel or a sandbox has no netlink: then changes are looked for now and then.
    let client: NetlinkClient?
    let nameServers: NameServers
    private let namespaceWatch: FileWatch?
    let state: Locked<State>

    static let coalesceTag: UInt8 = 0
    static let expiryTag: UInt8 = 1
    static let pollTag: UInt8 = 2
    static let drainTag: UInt8 = 3
    static let resyncTag: UInt8 = 4

    // MARK: The shared ones

    private static let shared = Locked([Options: NetworkObserver]())

    /// The observer with these options, which ends when its last view does.
    static func shared(_ options: Options) throws(NetworkError) -> NetworkObserver {
        if let observer = shared.withLock({ $0[options] }), !observer.isClosed { return observer }
        let new = try NetworkObserver(options)
        return shared.withLock { observers in
            if let other = observers[options], !other.isClosed { return other }
            observers[options] = new
            return new
        }
    }

    init(_ options: Options) throws(NetworkError) {
        self.options = options
        namespaceWatch = options.namespace.map { FileWatch([$0]) }
        do throws(SystemError) {
            loop = try EventLoopGroup.shared.nearest()
            nameServers = NameServers(options)
            var source = try Source.open(options)
            client = source.client
            state = Locked(State(events: source.events.take(), lists: source.lists))
        } catch {
            throw NetworkError(error, .setup, options.namespace ?? "no path monitor")
        }
    }

    /// Where it hears and asks.
    private struct Source: ~Copyable {
        var client: NetlinkClient?
        var events: Descriptor?
        var lists: NetworkLists

        static func open(_ options: Options) throws(SystemError) -> Source {
            do throws(SystemError) {
                if !options.usesNetlink { throw SystemError(SystemError.wrongFamily, "socket") }
                return try netlink(options)
            } catch {
                // A namespace has no other way, and want of descriptors or memory may pass.
                guard options.namespace == nil, error.kind != .noDescriptors,
                    error.kind != .noMemory
                else { throw error }
                return Source(
                    client: nil, events: nil, lists: NetworkLists(table: InterfacePoll.table()))
            }
        }

        private static func netlink(_ options: Options) throws(SystemError) -> Source {
            // First the announcements, then the lists: nothing falls in between.
            let groups = Descriptor.NetlinkGroup.allCases.filter {
                $0 != .neighbors || options.watchesGateways
            }
            let events = try Descriptor.netlink(
                groups: groups, receiveBuffer: options.receiveBuffer, namespace: options.namespace)
            let client = try NetlinkClient(namespace: options.namespace)
            return Source(
                client: client, events: events,
                lists: try NetworkLists(from: client, mayPause: false))
        }
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }
    var isPolling: Bool { client == nil }

    /// What is known of interfaces and addresses: for tests to compare with a fresh list.
    var table: NetworkTable { state.withLock { $0.lists.table } }

    /// What sysfs told of the types of interfaces.
    var knownTypes: [UInt32: InterfaceType] {
        state.withLock { $0.types.compactMapValues(\.type) }
    }

    // MARK: Views

    /// False if it has ended.
    func add(_ view: PathView) -> Bool {
        let (isOpen, isFirst) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            defer { state.views[ObjectIdentifier(view)] = WeakView(view: view) }
            return (true, state.views.isEmpty)
        }
        if isFirst { begin() }
        return isOpen
    }

    func remove(_ view: PathView) {
        let isLast = state.withLock { state in
            state.views[ObjectIdentifier(view)] = nil
            state.gateways[ObjectIdentifier(view)] = nil
            state.isClosed = state.views.isEmpty
            return state.isClosed
        }
        if isLast { end() }
    }

    private func begin() {
        nameServers.watch(on: loop) { [weak self] in self?.nameServersChanged() }
        watchNamespace()
        state.withLock { state in
            guard let events = state.events.take() else { return }
            state.token = try? loop.register(events, for: [.input], handler: self)
            state.events = consume events
        }
        if client == nil { schedulePoll() }
    }

    private final class Once: Sendable {
        private let isDone = Locked(false)

        func isFirst() -> Bool {
            isDone.withLock { isDone in
                defer { isDone = true }
                return !isDone
            }
        }
    }

    /// The namespace's sockets keep it alive, but nobody else finds it without its file.
    private func watchNamespace() {
        guard let path = options.namespace, let identity = FileIdentity(path) else { return }
        let isTold = Once()
        namespaceWatch?.start(on: loop) { [weak self] in
            guard FileIdentity(path) != identity, isTold.isFirst() else { return }
            self?.post([NetworkEvent(.namespace, cause: "netns \(path) gone; still monitored")])
        }
    }

    private func end() {
        Self.shared.withLock { if $0[options] === self { $0[options] = nil } }
        nameServers.close()
        namespaceWatch?.close()
        let listeners = state.withLock { state in
            if let events = state.events.take(), let token = state.token.take() {
                loop.deregister(events, token: token)
            }
            if let timer = state.timer.take() { loop.cancel(timer) }
            if let timer = state.pollTimer.take() { loop.cancel(timer) }
            if let timer = state.expiryTimer.take() { loop.cancel(timer) }
            if let timer = state.resyncTimer.take() { loop.cancel(timer) }
            defer { state.listeners = [:] }
            return state.listeners.values.compactMap(\.queue)
        }
        for listener in listeners { listener.finish() }
    }

    // MARK: Events

    /// What is heard from now on.
    func events() -> AsyncStream<NetworkEvent> {
        let queue = EventQueue { [weak self] queue in
            _ = self?.state.withLock { $0.listeners.removeValue(forKey: queue) }
        }
        let isOpen = state.withLock { state in
            if !state.isClosed {
                state.listeners[ObjectIdentifier(queue)] = WeakQueue(queue: queue)
            }
            return !state.isClosed
        }
        if !isOpen { queue.finish() }
        return EventQueue.stream(of: queue)
    }

    func post(_ events: [NetworkEvent]) {
        guard !events.isEmpty else { return }
        for queue in state.withLock({ $0.listeners.values.compactMap(\.queue) }) {
            for event in events { queue.hear(event) }
        }
    }
}
