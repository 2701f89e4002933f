internal import TowpathReactor
internal import TowpathWire

/// The name servers of resolv.conf(5), read anew when the file changes.
final class NameServers: Sendable {
    private let file: String
    private let upstreamFile: String
    private let watch: FileWatch
    private let servers = Locked<[IPAddress]>([])

    init(_ options: NetworkObserver.Options) {
        file = options.resolverFile
        upstreamFile = options.upstreamResolverFile
        watch = FileWatch([file, upstreamFile])
        refresh()
    }

    var list: [IPAddress] { servers.withLock { $0 } }

    /// Without inotify(7) the list stays as it was read.
    func watch(on loop: EventLoop, onChange: @escaping @Sendable () -> Void) {
        watch.start(on: loop) { [weak self] in if self?.refresh() == true { onChange() } }
    }

    func close() { watch.close() }

    /// True if the servers are others.
    @discardableResult
    private func refresh() -> Bool {
        var configuration = read(file)
        if configuration?.isLocalForwarder == true {
            configuration = read(upstreamFile) ?? configuration
        }
        let list = configuration?.nameServers ?? []
        return servers.withLock { servers in
            defer { servers = list }
            return list != servers
        }
    }

    private func read(_ path: String) -> ResolverConfiguration? {
        FileLinks.contents(of: path).map {
            ResolverConfiguration(parsing: String(decoding: $0, as: UTF8.self))
        }
    }
}
