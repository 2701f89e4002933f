internal import TowpathReactor
internal import TowpathWire

/// The name servers of resolv.conf(5), read anew when the file changes.
final class NameServers: EventHandler {
    private struct State: ~Copyable {
        var inotify: Descriptor?
        var token: Token?
        var names: Set<String> = []
        var list: [IPAddress] = []
        var onChange: (@Sendable () -> Void)?
    }

    private let file: String
    private let upstreamFile: String
    private let state = Locked(State())

    init(_ options: NetworkObserver.Options) {
        file = options.resolverFile
        upstreamFile = options.upstreamResolverFile
        refresh()
    }

    var list: [IPAddress] { state.withLock { $0.list } }

    /// Without inotify(7) the list stays as it was read.
    func watch(on loop: EventLoop, onChange: @escaping @Sendable () -> Void) {
        state.withLock { state in
            guard state.inotify == nil, let inotify = try? Descriptor.inotify() else { return }
            state.token = try? loop.register(inotify, for: [.input], handler: self)
            state.inotify = consume inotify
            state.onChange = onChange
            self.loop.withLock { $0 = loop }
        }
        refresh()
    }

    func close() {
        let loop = loop.withLock { $0.take() }
        let onChange = state.withLock { state in
            if let inotify = state.inotify.take(), let token = state.token.take() {
                loop?.deregister(inotify, token: token)
            }
            return state.onChange.take()
        }
        withExtendedLifetime(onChange) {}
    }

    private let loop = Locked<EventLoop?>(nil)
    private let refreshing = Locked(())

    func handle(_ events: ReadyEvents) {
        let matters = state.withLock { state in
            guard let changed = state.inotify.changedNames() else { return true }
            return !changed.isDisjoint(with: state.names)
        }
        guard matters else { return }
        // On the pool, which may wait for a disk.
        try? BlockingPool.shared.submit { [self] in
            if refresh() { state.withLock { $0.onChange }?() }
        }
    }

    func deadlineReached(_ tag: UInt8) {}

    /// True if the servers are others.
    @discardableResult
    private func refresh() -> Bool {
        // Not under the lock that the loop takes: a disk may be slow.
        refreshing.withLock { _ in
            state.withLock { state in
                // A symlink may lead elsewhere by now.
                state.names = state.inotify.watchDirectories(to: [file, upstreamFile])
            }
            var configuration = read(file)
            if configuration?.isLocalForwarder == true {
                configuration = read(upstreamFile) ?? configuration
            }
            let list = configuration?.nameServers ?? []
            return state.withLock { state in
                defer { state.list = list }
                return list != state.list
            }
        }
    }

    private func read(_ path: String) -> ResolverConfiguration? {
        FileLinks.contents(of: path).map {
            ResolverConfiguration(parsing: String(decoding: $0, as: UTF8.self))
        }
    }
}

extension Optional where Wrapped == Descriptor, Wrapped: ~Copyable {
    fileprivate borrowing func changedNames() -> Set<String>? {
        switch self {
        case .some(let inotify): inotify.changedNames()
        case .none: []
        }
    }

    fileprivate borrowing func watchDirectories(to paths: [String]) -> Set<String> {
        switch self {
        case .some(let inotify):
            paths.reduce(into: []) { $0.formUnion(inotify.watchDirectories(to: $1)) }
        case .none: []
        }
    }
}
