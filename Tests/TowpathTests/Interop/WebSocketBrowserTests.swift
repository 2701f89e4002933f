import Foundation
import TestSupport
import Testing
import Towpath

private let hasBrowser = !isSanitized && Program.has("chromium") && Program.has("python3")

@Suite("A WebSocket listener and a browser", .enabled(if: hasBrowser), .timeLimit(.minutes(3)))
struct WebSocketBrowserTests {
    /// What the page in `browser.py` found.
    private struct Found: Decodable {
        let extensions: String
        let same: [Bool]
        let code: Int
        let reason: String
        let wasClean: Bool
    }

    @Test("Chromium gets texts and bytes back, compressed, and its close is answered")
    func echoes() async throws {
        let script = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Peers/browser.py").path
        let listener = try await Listener(on: .loopback()) { WebSocket { TCP() } }
        let ends = Inbox<WebSocketEnd>()
        try await WebSocketSamples.echoing(listener, ends: ends) {
            let browser = try await Program.run(
                ["python3", script, "ws://\(listener.localEndpoint)/"])
            #expect(browser.status == 0, "\(browser)")
            let found = try JSONDecoder().decode(Found.self, from: Data(browser.output.utf8))
            #expect(found.extensions.hasPrefix("permessage-deflate"))
            #expect(found.same == Array(repeating: true, count: 5))
            #expect(found.code == 3001 && found.reason == "bye" && found.wasClean)
            let end = try await ends.next()
            #expect(end.code?.rawValue == 3001 && end.reason == "bye", "\(end)")
        }
    }
}
