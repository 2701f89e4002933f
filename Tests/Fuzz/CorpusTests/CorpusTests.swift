import Foundation
import FuzzInvariants
import Testing

@Suite("The fuzz corpus, replayed")
struct CorpusTests {
    @Test("endpoints keep their invariants", arguments: try corpus("FuzzEndpoint"))
    func endpoints(file: URL) throws {
        #expect(endpointFault(in: [UInt8](try Data(contentsOf: file))) == nil)
    }

    @Test("netlink datagrams keep their invariants", arguments: try corpus("FuzzNetlink"))
    func netlink(file: URL) throws {
        #expect(netlinkFault(in: [UInt8](try Data(contentsOf: file))) == nil)
    }

    @Test(
        "certificates, keys and pins keep their invariants",
        arguments: try corpus("FuzzCertificate"))
    func certificates(file: URL) throws {
        #expect(certificateFault(in: [UInt8](try Data(contentsOf: file))) == nil)
    }

    @Test("handshakes that are tampered with end as they must", arguments: try corpus("FuzzTLS"))
    func handshakes(file: URL) throws {
        #expect(handshakeFault(in: [UInt8](try Data(contentsOf: file))) == nil)
    }

    @Test("messages of WebSockets keep their invariants", arguments: try corpus("FuzzWebSocket"))
    func webSocket(file: URL) throws {
        #expect(webSocketFault(in: [UInt8](try Data(contentsOf: file))) == nil)
    }

    @Test(
        "opening handshakes keep their invariants",
        arguments: try corpus("FuzzWebSocketHandshake"))
    func webSocketHandshake(file: URL) throws {
        #expect(webSocketHandshakeFault(in: [UInt8](try Data(contentsOf: file))) == nil)
    }

    @Test("what is inflated keeps its invariants", arguments: try corpus("FuzzInflate"))
    func inflate(file: URL) throws {
        #expect(inflateFault(in: [UInt8](try Data(contentsOf: file))) == nil)
    }

    @Test("every fuzz target has a corpus")
    func targets() throws {
        for target in try folder("").filter({ $0.lastPathComponent.hasPrefix("Fuzz") }) {
            #expect(try !corpus(target.lastPathComponent).isEmpty, "\(target.lastPathComponent)")
        }
    }
}

/// The inputs kept for a fuzz target.
private func corpus(_ target: String) throws -> [URL] {
    try folder("Corpus/\(target)").sorted { $0.path < $1.path }
}

/// What is in a folder of Tests/Fuzz.
private func folder(_ path: String) throws -> [URL] {
    let fuzz = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    return try FileManager.default.contentsOfDirectory(
        at: fuzz.appending(path: path), includingPropertiesForKeys: nil)
}
