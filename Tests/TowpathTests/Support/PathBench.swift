import TestSupport
import Testing
import Towpath
import TowpathReactor

/// A network namespace with a cable `w0` (to `p0`, whose far end stays in the namespace of the tests' own)
/// and a monitor of it.
final class PathBench: Sendable {
    let namespace: NetworkNamespace
    let far: NetworkNamespace
    let monitor: PathMonitor

    /// Two namespaces, joined by so many cables: `w0` here, `p0` there.
    init(cables: Int = 1, _ change: (inout PathMonitor.Configuration) -> Void = { _ in })
        async throws
    {
        namespace = try await NetworkNamespace()
        far = try await NetworkNamespace()
        for number in 0..<cables {
            try await namespace.ip(
                "link", "add", "w\(number)", "type", "veth", "peer", "name", "p\(number)", "netns",
                far.name)
            try await namespace.ip("link", "set", "w\(number)", "up")
            try await far.ip("link", "set", "p\(number)", "up")
            try await namespace.ip(
                "addr", "add", "192.0.2.\(number * 16 + 2)/28", "dev", "w\(number)")
        }
        var configuration = PathMonitor.Configuration()
        configuration.namespace = "/run/netns/\(namespace.name)"
        configuration.resolverFile = "/nonexistent"
        change(&configuration)
        monitor = PathMonitor(configuration)
        if let failure = monitor.failure { throw failure }
    }

    func ip(_ words: String) async throws {
        try await Program.succeed(
            ["ip", "-n", namespace.name] + words.split(separator: " ").map(String.init))
    }

    func farIP(_ words: String) async throws {
        try await Program.succeed(
            ["ip", "-n", far.name] + words.split(separator: " ").map(String.init))
    }

    /// Waits for a path.
    @discardableResult
    func path(
        _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation,
        _ condition: @escaping @Sendable (Path) -> Bool
    ) async throws -> Path {
        do { return try await monitor.waitUntil(timeout: .seconds(20), condition) } catch {
            Issue.record("\(what): \(error)", sourceLocation: sourceLocation)
            throw error
        }
    }

    @discardableResult
    func obstacle(
        _ obstacle: Path.Obstacle, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Path {
        try await path("\(obstacle)", sourceLocation: sourceLocation) { $0.obstacle == obstacle }
    }

    @discardableResult
    func satisfied(
        via name: String? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Path {
        try await path("satisfied via \(name ?? "any")", sourceLocation: sourceLocation) {
            $0.status == .satisfied && (name == nil || $0.interfaces.first?.name == name)
        }
    }
}

/// The paths that a monitor publishes from now on, the present one first.
final class PathLog: Sendable {
    private let paths = Shared<[Path]>([])
    private let task: Task<Void, Never>

    init(_ monitor: PathMonitor) {
        let paths = paths
        task = Task { for await path in monitor { paths.withLock { $0.append(path) } } }
    }

    deinit { task.cancel() }

    var all: [Path] { paths.value }
}
