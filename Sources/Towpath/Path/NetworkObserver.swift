internal import TowpathReactor
internal import TowpathWire

/// Follows the network of one namespace: hears what the kernel announces, keeps the table, and asks anew
/// after each change what the paths are.
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
        /// resolv.conf(5) and what stands for it where systemd-resolved has its stub.
        var resolverFile = "/etc/resolv.conf"
        var stubResolverFile = "/run/systemd/resolve/resolv.conf"
    }

    private struct State: ~Copyable {
        var events: Descriptor?
        var token: Token?
        var lists: NetworkLists
        var views: [ObjectIdentifier: WeakView] = [:]
        var listeners: [Int: AsyncStream<NetworkEvent>.Continuation] = [:]
        var listenerCount = 0
        /// When the first change came that is not published yet.
        var changedSince: UInt64?
        var timer: TimerID?
        /// When a route or the patience with a doubtful list ends.
        var expiryTimer: TimerID?
        var isResynchronizing = false
        var resyncPause: UInt64 = 0
        var lastResync: UInt64 = 0
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var types: [UInt32: (name: String, type: InterfaceType?)] = [:]
        var isClosed = false
        var evaluationCount: UInt64 = 0
    }

    private struct WeakView {
        weak var view: PathView?
    }

    let loop: EventLoop
    let options: Options
    /// Nil where the kernel or a sandbox has no netlink: then changes are looked for now and then.
    private let client: NetlinkClient?
    private let nameServers: NameServers
    private let state: Locked<State>

    private static let coalesceTag: UInt8 = 0
    private static let expiryTag: UInt8 = 1
    private static let pollTag: UInt8 = 2
    private static let pollInterval: UInt64 = 5_000_000_000

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

    // MARK: Views

    func add(_ view: PathView) {
        let isFirst = state.withLock { state in
            state.views[ObjectIdentifier(view)] = WeakView(view: view)
            return state.token == nil
        }
        if isFirst { begin() }
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
            if let timer = state.expiryTimer.take() { loop.cancel(timer) }
            defer { state.listeners = [:] }
            return state.listeners.values.map { $0 }
        }
        for listener in listeners { listener.finish() }
    }

    // MARK: Announcements

    func handle(_ ready: ReadyEvents) {
        if state.withLock({ $0.isResynchronizing }) { return }
        drain()
    }

    private func drain() {
        var events: [NetworkEvent] = []
        let (isChanged, isLost) = state.withLock { read(&$0, &events) }
        post(events)
        if isLost { return resynchronize(because: "the receive buffer was full") }
        if isChanged { changed() }
    }

    /// Reads what there is. Reports whether anything may be different, and whether something was lost.
    private func read(
        _ state: inout State, _ events: inout [NetworkEvent]
    ) -> (isChanged: Bool, isLost: Bool) {
        var (isChanged, isLost) = (false, false)
        while true {
            switch state.events.receive(into: &state.buffer) {
            case .done(let count):
                guard apply(&state, count, &events) else {
                    isLost = true
                    continue
                }
                isChanged = true
            case .wouldBlock: return (isChanged, isLost)
            // ENOBUFS comes in front of what could be kept; that is read, and then all is listed anew.
            case .failed: isLost = true
            }
        }
    }

    /// Applies one datagram; false if it makes no sense.
    private func apply(
        _ state: inout State, _ count: Int, _ events: inout [NetworkEvent]
    ) -> Bool {
        var messages = NetlinkMessages(state.buffer[..<count])
        do throws(NetlinkError) {
            while let message = try messages.next() {
                let announcement = try RouteNetlink(message)
                if case .rule(let rule) = announcement, let family = rule.family, let client {
                    state.lists.ruleTables[family] = try? state.lists.ruleTables(client, family)
                }
                guard let change = state.lists.table.apply(announcement) else { continue }
                if !state.listeners.isEmpty {
                    events += NetworkEvent.events(announcement, change, state.lists.table)
                }
            }
            return true
        } catch {
            return false
        }
    }

    /// Something may be different: publishes once it is quiet.
    private func changed() {
        let now = MonotonicClock.now
        let quiet = MonotonicClock.nanoseconds(in: options.coalescing)
        guard quiet > 0 else { return evaluateAll() }
        state.withLock { state in
            guard !state.isClosed else { return }
            let since = state.changedSince ?? now
            state.changedSince = since
            if let timer = state.timer { loop.cancel(timer) }
            let deadline = min(now + quiet, since + 5 * quiet)
            state.timer = loop.schedule(at: deadline, self, tag: Self.coalesceTag)
        }
    }

    func deadlineReached(_ tag: UInt8) {
        switch tag {
        case Self.coalesceTag:
            state.withLock { state in
                state.timer = nil
                state.changedSince = nil
            }
            evaluateAll()
        case Self.expiryTag:
            let isDoubtful = state.withLock { state in
                state.expiryTimer = nil
                return state.lists.isDoubtful
            }
            if isDoubtful { resynchronize(because: nil) } else { evaluateAll() }
        default: poll()
        }
    }

    private func nameServersChanged() {
        post([NetworkEvent(.dns, cause: "name servers changed")])
        changed()
    }

    // MARK: Losses

    /// Lists everything anew, on a thread that may wait.
    private func resynchronize(because loss: String?) {
        let now = MonotonicClock.now
        let pause = state.withLock { state -> UInt64? in
            guard !state.isResynchronizing, !state.isClosed else { return nil }
            state.isResynchronizing = true
            // Twice as long each time while a storm goes on: 100 ms to 10 s.
            let isStorm = now - state.lastResync < 2 * max(state.resyncPause, 100_000_000)
            state.resyncPause =
                isStorm ? min(max(state.resyncPause * 2, 100_000_000), 10_000_000_000) : 0
            return state.resyncPause
        }
        guard let pause, let client else { return }
        do throws(SystemError) {
            try BlockingPool.shared.submit { [self] in
                if pause > 0 { BlockingPause.milliseconds(Int32(pause / 1_000_000)) }
                adopt(try? NetworkLists(from: client, mayPause: true), because: loss)
            }
        } catch {
            state.withLock { $0.isResynchronizing = false }
        }
    }

    private func adopt(_ lists: NetworkLists?, because loss: String?) {
        var changes = 0
        state.withLock { state in
            state.isResynchronizing = false
            state.lastResync = MonotonicClock.now
            guard let lists else { return }
            changes = state.lists.table.differences(from: lists.table)
            state.lists = lists
        }
        if let loss {
            post([
                NetworkEvent(.gap, cause: "\(loss); resynchronised: \(changes) changes")
            ])
        }
        // What came meanwhile still lies in the socket, and no edge tells of it again.
        drain()
        evaluateAll()
    }

    // MARK: Paths

    private func evaluateAll() {
        let views = state.withLock { $0.views.values.compactMap(\.view) }
        for view in views { evaluate(view) }
    }

    func evaluate(_ view: PathView) {
        var evaluation = Evaluation()
        state.withLock { prepare(&$0, &evaluation) }
        let evaluator = PathEvaluator(
            table: evaluation.table, requirement: view.question.requirement,
            defaults: evaluation.defaults, nameServers: nameServers.list, types: evaluation.types,
            ask: { [client] query in client?.ask(query) ?? InterfacePoll.ask(query) })
        var path = evaluator.path(to: view.destinations, port: view.port)
        path.isPolled = client == nil
        if case .hostPort? = view.question.endpoint, path.remoteEndpoint == nil {
            path.remoteEndpoint = view.question.endpoint
        }
        let isNew = view.publish(path, evaluation.number)
        if isNew, path.status == .satisfied { view.resolve() }
    }

    private struct Evaluation {
        var number: UInt64 = 0
        var table = NetworkTable()
        var defaults: [RouteMessage] = []
        var types: [UInt32: InterfaceType] = [:]
    }

    private func prepare(_ state: inout State, _ evaluation: inout Evaluation) {
        state.evaluationCount += 1
        evaluation.number = state.evaluationCount
        if let client { evaluation.defaults = (try? state.lists.defaults(from: client)) ?? [] }
        evaluation.table = state.lists.table
        if options.namespace == nil {
            for (index, link) in state.lists.table.links {
                let name = link.message.name
                if state.types[index]?.name != name {
                    state.types[index] = (name, Sysfs.type(of: name))
                }
                evaluation.types[index] = state.types[index]?.type
            }
        }
        scheduleExpiry(&state, evaluation.defaults)
    }

    /// A route that a router announced ends without a word; the kernel tells up to 30 s later.
    private func scheduleExpiry(_ state: inout State, _ defaults: [RouteMessage]) {
        if let timer = state.expiryTimer.take() { loop.cancel(timer) }
        guard !state.isClosed, state.token != nil else { return }
        let seconds = defaults.compactMap(\.expires).min()
        guard seconds != nil || state.lists.isDoubtful else { return }
        let delay = UInt64(min(seconds ?? 1, state.lists.isDoubtful ? 1 : .max)) + 1
        state.expiryTimer = loop.schedule(
            at: MonotonicClock.now + delay * 1_000_000_000, self, tag: Self.expiryTag)
    }

    // MARK: Without netlink

    private func schedulePoll() {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.timer = loop.schedule(
                at: MonotonicClock.now + Self.pollInterval, self, tag: Self.pollTag)
        }
    }

    private func poll() {
        let table = InterfacePoll.table()
        let isChanged = state.withLock { state in
            defer { state.lists.table = table }
            return !state.lists.table.isSame(as: table)
        }
        if isChanged { post([NetworkEvent(.gap, cause: "polled: the interfaces are others")]) }
        evaluateAll()
        schedulePoll()
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

    private func post(_ events: [NetworkEvent]) {
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

extension Optional where Wrapped == Descriptor, Wrapped: ~Copyable {
    fileprivate borrowing func receive(into buffer: inout [UInt8]) -> Transfer {
        switch self {
        case .some(let socket): socket.receiveNetlink(into: &buffer)
        case .none: .wouldBlock
        }
    }
}
