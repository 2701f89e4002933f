import Foundation

/// A server process, ours or the limit, bound and waiting.
struct Server {
    /// Which of the two, and how it is started.
    enum Kind {
        case limit(command: [String])
        case ours(command: [String])

        /// `identity` is there for the modes with TLS.
        fileprivate func command(mode: String, identity: [String]) -> [String] {
            switch self {
            case .limit(let command): command + (identity.isEmpty ? [] : ["--tls"]) + identity
            case .ours(let command): command + ["serve", mode] + identity
            }
        }
    }

    /// What it speaks on top of TCP, as options of the load.
    let layers: [String]
    private let process: ChildProcess
    private let ports: [String: String]

    /// Starts it; `wrapper` is put before its command, a profiler for one.
    init(
        _ kind: Kind, mode: String, identity: [String], on processor: String?,
        wrapper: [String] = [], environment: [String: String] = [:]
    ) throws {
        layers =
            (identity.isEmpty ? [] : ["--tls"]) + (mode.hasPrefix("ws") ? ["--ws"] : [])
            + (mode == "ws-deflate" ? ["--deflate"] : [])
        let command = wrapper + kind.command(mode: mode, identity: identity)
        process = try ChildProcess(
            pinned(command, to: processor), environment: environment, silent: !wrapper.isEmpty)
        do {
            let words = try process.line(within: .seconds(60)).split(separator: " ")
            var ports: [String: String] = [:]
            for (name, port) in zip(words, words.dropFirst()) { ports[String(name)] = String(port) }
            self.ports = ports
        } catch {
            process.terminate()
            throw error
        }
    }

    var identifier: Int32 { process.identifier }

    func port(_ transport: String) throws -> String {
        guard let port = ports[transport] else {
            throw BenchmarkError("the server prints no \(transport) port")
        }
        return port
    }

    /// Ends it; an error if it has ended by itself.
    func stop() throws {
        let lived = process.isRunning
        process.terminate()
        if !lived { throw BenchmarkError("the server ended by itself") }
    }
}

/// The command, bound to one processor.
func pinned(_ command: [String], to processor: String?) -> [String] {
    guard let processor else { return command }
    return ["taskset", "-c", processor] + command
}
