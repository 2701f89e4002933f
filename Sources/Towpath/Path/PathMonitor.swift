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

    /// How often it was looked at what there is: for tests.
    package var evaluationCount: UInt64 {
        (try? view.get().observer.state.withLock { $0.evaluationCount }) ?? 0
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
