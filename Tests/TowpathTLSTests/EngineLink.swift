import Testing
import TowpathTLS

/// Two engines joined in memory.
struct EngineLink {
    let client: TLSEngine
    let server: TLSEngine

    /// How both handshakes ended; nil for success.
    struct Outcome {
        let client: TLSError?
        let server: TLSError?
    }

    func handshake() throws -> Outcome {
        var (toServer, toClient): ([UInt8], [UInt8]) = ([], [])
        // Neither needs more than three flights; a message may come in several pieces.
        for _ in 0..<10 {
            let atClient = Self.step(client, toClient, &toServer)
            let atServer = Self.step(server, toServer, &toClient)
            switch (atClient, atServer) {
            case (.done, .done): return Outcome(client: nil, server: nil)
            case (.failed(let error), .failed(let other)):
                return Outcome(client: error, server: other)
            case (.failed(let error), _) where toClient.isEmpty:
                return Outcome(client: error, server: nil)
            case (_, .failed(let error)) where toClient.isEmpty:
                return Outcome(client: nil, server: error)
            default: continue
            }
        }
        throw Stuck()
    }

    struct Stuck: Error {}

    private static func step(
        _ engine: TLSEngine, _ input: [UInt8], _ output: inout [UInt8]
    ) -> TLSEngine.Progress {
        var scratch = [UInt8](repeating: 0, count: 16_384)
        return input.withUnsafeBytes { input in
            scratch.withUnsafeMutableBytes { scratch in
                engine.lend(input: input, output: scratch)
                let progress = engine.handshake()
                output = Array(engine.output)
                engine.sent(output.count)
                engine.settle()
                return progress
            }
        }
    }
}
