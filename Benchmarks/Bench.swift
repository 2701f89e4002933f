import Foundation

/// Everything a work needs to run: the programs, the processors, the options.
struct Bench {
    let options: Options
    let limits: Limits
    /// This program or another build of it; nil to compare C with C.
    private let program: String?
    /// Server first, load second; none when there is but one processor, and nothing is pinned.
    private let processors: (server: String, load: String)?

    init(options: Options) throws {
        self.options = options
        limits = try Limits(building: options.buildFolder ?? Limits.defaultFolder)
        program =
            switch options.server {
            case "limit": nil
            case let path?: path
            case nil: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
            }
        let allowed = try Self.allowedProcessors()
        processors = allowed.count < 2 ? nil : (String(allowed[0]), String(allowed[1]))
        Self.raiseDescriptorLimit()
    }

    /// Who serves: this library, the limit, or another library to compare with.
    enum Side: Equatable { case ours, limit, peer(Peer) }

    private func kind(_ side: Side, mode: String) throws -> Server.Kind {
        switch side {
        case .ours:
            if let program { return .ours(command: [program]) }
            return try kind(.limit, mode: mode)
        case .limit:
            return .limit(command: [limits.echo] + (mode.hasPrefix("ws") ? ["--ws"] : []))
        case .peer(let peer):
            return .limit(command: try peer.command(mode: mode, in: limits))
        }
    }

    func server(
        _ side: Side, mode: String, wrapper: [String] = [], environment: [String: String] = [:]
    ) throws -> Server {
        try Server(
            kind(side, mode: mode), mode: mode,
            identity: mode.hasPrefix("tls") ? limits.identity : [], on: processors?.server,
            wrapper: wrapper, environment: environment)
    }

    /// Runs the load against a server and returns the numbers it prints.
    func load(
        _ arguments: [String], on server: Server, transport: String = "tcp"
    ) throws -> [String: Double] {
        let command =
            [limits.load] + arguments + server.layers + [
                "--port", try server.port(transport), "--pid", String(server.identifier),
            ]
        let line = try ChildProcess.output(of: pinned(command, to: processors?.load))
        var numbers: [String: Double] = [:]
        for field in line.split(whereSeparator: \.isWhitespace) {
            let parts = field.split(separator: "=")
            if parts.count == 2, let value = Double(parts[1]) { numbers[String(parts[0])] = value }
        }
        return numbers
    }

    /// Starts a server, hands it to `body`, and stops it on every way out.
    func withServer<Result>(
        _ side: Side, mode: String, wrapper: [String] = [], environment: [String: String] = [:],
        _ body: (Server) throws -> Result
    ) throws -> Result {
        let server = try server(side, mode: mode, wrapper: wrapper, environment: environment)
        let result: Result
        do {
            result = try body(server)
        } catch {
            try? server.stop()
            throw error
        }
        try server.stop()
        return result
    }

    /// Handles bytes over and over where the server would run, and returns the nanoseconds for 10⁹.
    func handle(_ bytes: String, by side: Side) throws -> Double {
        var command = [limits.bytes]
        if side == .ours, let program { command = [program, "bytes"] }
        command += [bytes, options.quick ? "0.1" : "0.5"]
        let line = try ChildProcess.output(of: pinned(command, to: processors?.server))
        guard
            let value = line.split(whereSeparator: { "=\n".contains($0) }).last.flatMap({
                Double($0)
            })
        else { throw BenchmarkError("\(bytes) has no figure") }
        return value
    }

    /// Starts a reader of announcements in the namespace, or one that lists; a reader is ready then.
    func watcher(
        _ side: Side, mode: String, count: Int, in namespace: Namespace
    ) throws -> ChildProcess {
        let command =
            if side == .ours, let program {
                [program, "watch", mode, namespace.path, String(count)]
            } else {
                namespace.inside([
                    limits.netlink, mode == "watch-hop" ? "watch" : mode, String(count),
                ])
            }
        let watcher = try ChildProcess(pinned(command, to: processors?.server))
        guard mode != "list" else { return watcher }
        do {
            _ = try watcher.line(within: .seconds(10))
        } catch {
            watcher.terminate()
            throw error
        }
        return watcher
    }

    /// Runs the C program in the namespace to its end, where the load runs.
    func netlink(_ arguments: [String], in namespace: Namespace) throws -> String {
        let command = namespace.inside([limits.netlink] + arguments)
        return try ChildProcess.output(of: pinned(command, to: processors?.load))
    }

    /// The processors this process may use, from a list such as `0-3,8`.
    private static func allowedProcessors() throws -> [Int] {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let key = "Cpus_allowed_list:"
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix(key) }) else {
            return []
        }
        let list = line.dropFirst(key.count).trimmingCharacters(in: .whitespaces)
        return list.split(separator: ",").flatMap { range -> [Int] in
            let bounds = range.split(separator: "-").compactMap { Int($0) }
            guard let first = bounds.first, let last = bounds.last else { return [] }
            return Array(first...last)
        }
    }

    /// Both servers and the load inherit it; 10,000 connections are more than the usual 1,024.
    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
