import TestSupport
import Testing
import TowpathTLS

extension EnginePair {
    /// The handshake, which must succeed.
    func establish(sourceLocation: SourceLocation = #_sourceLocation) throws {
        guard case .failed(let client, let server) = handshake() else { return }
        Issue.record(
            "client: \(client.map { "\($0)" } ?? "-"); server: \(server.map { "\($0)" } ?? "-")",
            sourceLocation: sourceLocation)
        throw client ?? server ?? TLSError(.handshake, "no handshake")
    }
}
