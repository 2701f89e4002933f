internal import TowpathReactor
internal import TowpathWire

/// The way that a connection takes.
extension Connection {
    /// The way to the other side, now and after each change, by the connection's requirements. Before the
    /// connection is ready, the way to the endpoint it was made for; for a Unix socket, whether this host
    /// has any way out.
    public var paths: PathMonitor { monitor() }

    /// The way to the other side now. See ``PathMonitor/currentPath`` for what that takes.
    public var currentPath: Path { paths.currentPath }

    /// Whether packets can leave from the connection's address to the other side, now and after each
    /// change: false while a cable is out. The connection itself lives on until a time-out ends it.
    public var viability: AsyncStream<Bool> {
        Self.distinct(monitor(from: localEndpoint?.address)) { $0.status == .satisfied }
    }

    /// Whether a new connection would leave through another interface than this one, now and after each
    /// change: a reason to open a new one, and move there.
    public var betterPath: AsyncStream<Bool> {
        let local = localEndpoint?.address
        return Self.distinct(paths) { path in
            guard path.status == .satisfied, let local, let first = path.interfaces.first else {
                return false
            }
            // The address may be another interface's, and the loopback leads to all of them.
            return !first.addresses.contains(local) && path.localEndpoint?.address != local
        }
    }

    private func monitor(from source: IPAddress? = nil) -> PathMonitor {
        var requirement = (parameters ?? Parameters()).pathRequirement
        requirement.source = source
        return PathMonitor(
            PathView.Question(requirement: requirement, endpoint: remoteEndpoint),
            NetworkObserver.Options())
    }

    /// The monitor lives as long as the stream.
    private static func distinct(
        _ monitor: PathMonitor, _ map: @escaping @Sendable (Path) -> Bool
    ) -> AsyncStream<Bool> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let task = Task {
                var last: Bool?
                for await path in monitor {
                    let value = map(path)
                    if value != last { continuation.yield(value) }
                    last = value
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }
}

extension Endpoint {
    fileprivate var address: IPAddress? {
        switch host {
        case .ipv4(let address)?: .v4(address)
        case .ipv6(let address)?: IPAddress.v6(address).normalized
        case .name?, nil: nil
        }
    }
}
