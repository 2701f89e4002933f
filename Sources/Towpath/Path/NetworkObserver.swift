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
    }

    struct State: ~Copyable {
        var events: Descriptor?
        var token: Token?
        var lists: NetworkLists
        var views: [ObjectIdentifier: WeakView] = [:]
        var listeners: [Int: AsyncStream<NetworkEvent>.Continuation] = [:]
        var listenerCount = 0
        /// When the first change came that is not published yet.
        var changedSince: UInt64?
        var timer: TimerID?
        var pollTimer: TimerID?
        /// When a route or the patience with a doubtful list ends.
        var expiryTimer: TimerID?
        var isResynchronizing = false
        /// A deadline goes on reading where the last turn's share ended.
        var isDrainScheduled = false
        var resyncPause: UInt64 = 0
        var lastResync: UInt64 = 0
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var types: [UInt32: (name: String, type: InterfaceType?)] = [:]
        var rulesChanged = false
        /// A thread of the pool evaluates, and has to do so once more.
        var isEvaluating = false
        var needsEvaluation = false
        var isClosed = false
        var evaluationCount: UInt64 = 0
    }

    struct WeakView {
        weak var view: PathView?
    }

    let loop: EventLoop
    let options: Options
    /// Nil where the kernel or a sandbox has no netlink: then changes are looked for now and then.
    let client: NetlinkClient?
    let nameServers: NameServers
    let state: Locked<State>

    static let coalesceTag: UInt8 = 0
    static let expiryTag: UInt8 = 1
    static let pollTag: UInt8 = 2
    static let drainTag: UInt8 = 3
    static let pollInterval: UInt64 = 5_000_000_000

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
            do throws(SystemError) { return try netlink(options) } catch {
                // A namespace that cannot be entered has no other way.
                guard options.namespace == nil else { throw error }
                return Source(
                    client: nil, events: nil, lists: NetworkLists(table: InterfacePoll.table()))
            }
        }

        private static func netlink(_ options: Options) throws(SystemError) -> Source {
            // First the announcements, then the lists: nothing falls in between.
            let events = try Descriptor.netlink(
                groups: Descriptor.NetlinkGroup.allCases, receiveBuffer: options.receiveBuffer,
                namespace: options.namespace)
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
            state.isClosed = state.views.isEmpty
            return state.isClosed
        }
        if isLast { end() }
    }

    private func begin() {
        nameServers.watch(on: loop) { [weak self] in self?.nameServersChanged() }
        state.withLock { state in
            guard let events = state.events.take() else { return }
            state.token = try? loop.register(events, for: [.input], handler: self)
            state.events = consume events
        }
        if client == nil { schedulePoll() }
    }

    private func end() {
        Self.shared.withLock { if $0[options] === self { $0[options] = nil } }
        nameServers.close()
        let listeners = state.withLock { state in
            if let events = state.events.take(), let token = state.token.take() {
                loop.deregister(events, token: token)
            }
            if let timer = state.timer.take() { loop.cancel(timer) }
            if let timer = state.pollTimer.take() { loop.cancel(timer) }
            if let timer = state.expiryTimer.take() { loop.cancel(timer) }
            defer { state.listeners = [:] }
            return state.listeners.values.map { $0 }
        }
        for listener in listeners { listener.finish() }
    }

    // MARK: Events

    /// What is heard from now on; the newest 4,096 wait to be taken.
    func events() -> AsyncStream<NetworkEvent> {
        AsyncStream(bufferingPolicy: .bufferingNewest(4_096)) { continuation in
            let number = state.withLock { state -> Int? in
                guard !state.isClosed else { return nil }
                state.listenerCount += 1
                state.listeners[state.listenerCount] = continuation
                return state.listenerCount
            }
            guard let number else { return continuation.finish() }
            continuation.onTermination = { [weak self] _ in
                _ = self?.state.withLock { $0.listeners.removeValue(forKey: number) }
            }
        }
    }

    func post(_ events: [NetworkEvent]) {
        guard !events.isEmpty else { return }
        let listeners = state.withLock { Array($0.listeners.values) }
        for event in events {
            for listener in listeners {
                if case .dropped = listener.yield(event) {
                    listener.yield(NetworkEvent(.gap, cause: "events were not taken in time"))
                }
            }
        }
    }
}
