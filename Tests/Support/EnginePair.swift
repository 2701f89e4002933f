package import TowpathTLS

/// A client and a server without sockets: what one writes, the other one reads.
package struct EnginePair {
    package let client: TLSEngine
    package let server: TLSEngine
    /// How the ciphertext is cut on its way.
    package var split: (Int) -> Int = { $0 }
    /// What may happen to a piece of it on its way.
    package var tamper: (_ fromClient: Bool, inout [UInt8]) -> Void = { _, _ in }

    package enum Outcome {
        case established
        case failed(client: TLSError?, server: TLSError?)
    }

    package init(
        _ client: TLSConfiguration, _ server: TLSConfiguration,
        to name: TLSPeerName? = .name("localhost"), resuming session: TLSSession? = nil
    ) throws {
        try self.init(TLSContext(client), TLSContext(server), to: name, resuming: session)
    }

    package init(
        _ client: TLSContext, _ server: TLSContext, to name: TLSPeerName? = .name("localhost"),
        resuming session: TLSSession? = nil
    ) throws {
        self.client = try TLSEngine(client, to: name, resuming: session)
        self.server = try TLSEngine(server)
    }

    /// The errors of both handshakes; nil for success.
    package func errors() -> (client: TLSError?, server: TLSError?) {
        if case .failed(let client, let server) = handshake() {
            (client, server)
        } else {
            (nil, nil)
        }
    }

    /// With a root of its own.
    package static func make(
        _ change: (inout TLSConfiguration, inout TLSConfiguration) -> Void = { _, _ in }
    ) throws -> EnginePair {
        let root = try TestAuthority()
        var client = TLSConfiguration(.client)
        var server = TLSConfiguration(.server)
        client.trust = .anchors([root.certificate])
        server.identities = [try root.issue("DNS:localhost", "IP:127.0.0.1")]
        change(&client, &server)
        return try EnginePair(client, server)
    }

    /// Moves ciphertext to and fro until nobody has any; true if some was moved.
    @discardableResult
    package func move() -> Bool {
        var hasMoved = false
        while transfer(client, server, true) || transfer(server, client, false) { hasMoved = true }
        return hasMoved
    }

    private func transfer(_ source: TLSEngine, _ target: TLSEngine, _ fromClient: Bool) -> Bool {
        guard source.hasOutput else { return false }
        var bytes = [UInt8](source.output)
        source.sent(bytes.count)
        source.settle()
        tamper(fromClient, &bytes)
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(max(1, split(rest.count)))
            rest = rest.dropFirst(piece.count)
            target.feed(piece)
            _ = target.isEstablished ? nil : target.handshake()
            target.settle()
        }
        return true
    }

    /// To the end of the handshake on both sides.
    package func handshake() -> Outcome {
        _ = client.handshake()
        client.settle()
        while move() {}
        if client.isEstablished, server.isEstablished, client.failure == nil, server.failure == nil
        {
            return .established
        }
        return .failed(client: client.failure, server: server.failure)
    }

    /// What a client's handshake comes to.
    package func clientError() -> TLSError? {
        let (client, server) = errors()
        return client ?? server
    }
}

extension TLSEngine {
    package func feed(_ bytes: some Collection<UInt8>) {
        Array(bytes).withUnsafeBytes {
            lend(input: $0, output: .init(start: nil, count: 0))
            settle()
        }
    }

    package func write(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            sent += try bytes.withUnsafeBytes { all throws(TLSError) in
                try write(UnsafeRawBufferPointer(rebasing: all[sent...]))
            }
        }
        settle()
    }

    /// All the plaintext there is, and how it went on.
    package func readAll(_ step: Int = 4_096) -> (bytes: [UInt8], end: Reading) {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: step)
        while true {
            let reading = buffer.withUnsafeMutableBytes { read(into: $0) }
            guard case .bytes(let count) = reading, count > 0 else {
                settle()
                return (bytes, reading)
            }
            bytes += buffer.prefix(count)
        }
    }
}

extension TLSEngine.Reading {
    package var isEnd: Bool { if case .end = self { true } else { false } }
    package var wantsInput: Bool { if case .wantsInput = self { true } else { false } }
    package var error: TLSError? { if case .failed(let error) = self { error } else { nil } }
}
