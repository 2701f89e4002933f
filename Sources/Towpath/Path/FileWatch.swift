internal import TowpathReactor

/// Calls when one of some files may be another: written, replaced, removed, or pointed elsewhere.
final class FileWatch: EventHandler {
    private struct State: ~Copyable {
        var inotify: Descriptor?
        var token: Token?
        var loop: EventLoop?
        var names: Set<String> = []
        var onChange: (@Sendable () -> Void)?
    }

    private let paths: [String]
    private let state = Locked(State())
    private let calling = Locked(())

    init(_ paths: [String]) { self.paths = paths }

    /// Calls from a thread of the pool, one call at a time, and once now on this one. Without inotify(7)
    /// there is no other call.
    func start(on loop: EventLoop, onChange: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.onChange = onChange
            guard state.inotify == nil, let inotify = try? Descriptor.inotify() else { return }
            state.token = try? loop.register(inotify, for: [.input], handler: self)
            state.inotify = consume inotify
            state.loop = loop
        }
        call()
    }

    func close() {
        let onChange = state.withLock { state in
            if let inotify = state.inotify.take(), let token = state.token.take() {
                state.loop?.deregister(inotify, token: token)
            }
            return state.onChange.take()
        }
        withExtendedLifetime(onChange) {}
    }

    func handle(_ events: ReadyEvents) {
        let matters = state.withLock { state in
            guard let changed = state.inotify.changedNames() else { return true }
            return !changed.isDisjoint(with: state.names)
        }
        guard matters else { return }
        // On the pool, which may wait for a disk.
        try? BlockingPool.shared.submit { [self] in call() }
    }

    func deadlineReached(_ tag: UInt8) {}

    private func call() {
        calling.withLock { _ in
            let onChange = state.withLock { state in
                // A symlink may lead elsewhere by now, and a folder be another.
                state.names = state.inotify.watchDirectories(to: paths)
                return state.onChange
            }
            onChange?()
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
