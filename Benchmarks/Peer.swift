import Foundation

/// The echo server of another library, for works of WebSocket.
enum Peer: String {
    case libwebsockets = "lws"
    case node

    /// Debian's folder, where node itself does not look when it comes from elsewhere.
    private static let nodePath = "NODE_PATH=/usr/share/nodejs"

    /// Why it cannot run here, or nil.
    var obstacle: String? {
        let (probe, package) =
            switch self {
            case .libwebsockets:
                (
                    ["cc", "-fsyntax-only", "-include", "libwebsockets.h", "-xc", "/dev/null"],
                    "libwebsockets-dev"
                )
            case .node: (["env", Self.nodePath, "node", "-e", "require('ws')"], "node-ws")
            }
        let isThere = (try? ChildProcess.output(of: probe, silent: true)) != nil
        return isThere ? nil : "it needs \(package)"
    }

    /// What starts it, for a mode of `Benchmarks serve`.
    func command(mode: String, in limits: Limits) throws -> [String] {
        switch self {
        case .libwebsockets:
            return [
                try Limits.compile(
                    "lws.c", to: limits.folder.appending(path: "lws"), libraries: ["-lwebsockets"])
            ]
        case .node:
            let script = Limits.sources.appending(path: "ws.js").path
            return ["env", Self.nodePath, "node", script]
                + (mode == "ws-deflate" ? ["deflate"] : [])
        }
    }
}
