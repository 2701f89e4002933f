import Foundation
import TestSupport
import Testing
import Towpath

/// WebSocket as others made it: programs in `Tests/Peers`, which are all called the same way.
///
/// `server COMPRESSION` prints the port that it listens on, and sends back every message but a text
/// `close CODE REASON`, which closes, and `ping`, which pings and answers `pong` behind the pong.
/// `client COMPRESSION URL echo [ROOT]` sends five messages and waits for each, pings, and closes with
/// 3001. With any other word it sends that, prints the texts that come, and waits for the end.
///
/// Both print `open deflate` or `open plain`, the client `same` for each of its messages and `pong`, and
/// at the end `closed CODE REASON`.
enum WebSocketPeer: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case websockets, aiohttp
    case ws

    var testDescription: String { rawValue }

    /// Whether its server pings when it is asked to, and its client by itself: aiohttp tells nobody of a
    /// pong.
    var pings: Bool { self != .aiohttp }

    /// With the programs of `Tests/check setup`; skipped under the sanitizers, which would only watch the
    /// test's own side.
    static let available: [WebSocketPeer] = isSanitized ? [] : allCases.filter(\.isThere)

    private static let tests = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../..").standardizedFileURL.path
    private static let python = "\(tests)/../.build/websocket-peers/bin/python3"
    private static let modules = "/usr/share/nodejs"

    private var isThere: Bool {
        if self == .ws, !Program.has("node") { return false }
        if access(self == .ws ? "\(Self.modules)/ws" : Self.python, R_OK) == 0 { return true }
        skip("WebSocket with \(rawValue) (run Tests/check setup)")
        return false
    }

    private func start(_ arguments: [String]) throws -> Program {
        let script = "\(Self.tests)/Peers/websocket-\(rawValue)"
        let command = self == .ws ? ["node", "\(script).js"] : [Self.python, "\(script).py"]
        return try Program(command + arguments, environment: ["NODE_PATH": Self.modules])
    }

    /// Starts its server, and returns it with its port.
    func server(compresses: Bool = true) async throws -> (program: Program, port: UInt16) {
        let program = try start(["server", compresses ? "deflate" : "plain"])
        let line = try await program.line()
        guard let port = UInt16(line) else {
            throw Program.Failure(description: "no port: \(line)")
        }
        return (program, port)
    }

    /// Starts its client.
    func client(
        compresses: Bool = true, _ url: String, _ purpose: String, root: String? = nil
    ) throws -> Program {
        try start(
            ["client", compresses ? "deflate" : "plain", url, purpose] + (root.map { [$0] } ?? []))
    }
}

/// What two sides think of compression, and what follows.
struct Compressions: Sendable, CustomTestStringConvertible {
    let ours: Bool
    let theirs: Bool

    static let all = [
        Compressions(ours: true, theirs: true), Compressions(ours: false, theirs: true),
        Compressions(ours: true, theirs: false),
    ]

    var testDescription: String { "ours \(ours), theirs \(theirs)" }
    var opened: String { ours && theirs ? "open deflate" : "open plain" }
}

extension WebSocket {
    func compressing(_ isWanted: Bool) -> WebSocket {
        compression(isWanted ? .enabled : .disabled)
    }
}

/// What is sent to and fro.
enum WebSocketSamples {
    /// Of every form that a frame's length has, and a long one that compresses and one that does not.
    static let samples: [WebSocketMessage] =
        [
            .text(""), .text("h\u{E9}llo \u{1F600}"), .binary([]), .binary(Array(0...255)),
            .text(String(repeating: "compressible ", count: 16_000)),
        ] + [125, 126, 65_535, 65_536, 200_000].map { .binary(Streams.pattern($0)) }

    /// Sends each, which must come back before the next one goes.
    static func expectEchoes(
        from connection: Connection<WebSocket>, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        for (index, message) in samples.enumerated() {
            try await connection.send(message)
            // Not in `#expect`, which would look for the difference for minutes.
            let isSame = try await connection.receive() == message
            #expect(isSame, "message \(index)", sourceLocation: sourceLocation)
        }
    }

    /// Sends everything back while the body runs; a text `close CODE REASON` closes. Every end is told.
    static func echoing<Value: Sendable>(
        _ listener: Listener<WebSocket>, ends: Inbox<WebSocketEnd> = Inbox(),
        while body: () async throws -> Value
    ) async throws -> Value {
        try await serving(listener) { connection in
            var error: NetworkError?
            do {
                for try await message in connection.messages {
                    guard case .text(let text) = message, text.hasPrefix("close ") else {
                        try await connection.send(message)
                        continue
                    }
                    let words = text.split(separator: " ", maxSplits: 2)
                    let code = WebSocketCloseCode(rawValue: UInt16(words[1]) ?? 0)
                    try await connection.close(code: code, reason: String(words[2]))
                }
            } catch let failure as NetworkError { error = failure }
            let status = connection.closeStatus
            ends.send(WebSocketEnd(code: status?.code, reason: status?.reason, error: error))
        } while: {
            try await body()
        }
    }
}

/// How a connection ended for a handler.
struct WebSocketEnd: Sendable {
    let code: WebSocketCloseCode?
    let reason: String?
    let error: NetworkError?
}
