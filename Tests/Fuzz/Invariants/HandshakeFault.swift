internal import TestSupport
internal import TowpathTLS

/// What is wrong with how a handshake ends that was tampered with; nil if nothing is.
///
/// The first byte says what is done, the next two where:
///
///     bit 0      to what the server sends, not the client
///     bit 1      in TLS 1.2
///     bits 2, 3  0: bytes are changed; 1: bytes come in between; 2: the stream ends; 3: nothing but these
///                bytes comes
///
/// Each side ends with an error or stands, and what is then read is what was written or a part of it from
/// the beginning. Whoever had nothing but such bytes never stands.
package func handshakeFault(in bytes: [UInt8]) -> String? {
    guard bytes.count >= 3, let contexts = Contexts.all else { return nil }
    let place = Int(bytes[1]) << 8 | Int(bytes[2])
    let context = bytes[0] & 2 == 0 ? contexts.newer : contexts.older
    let change = Change(bytes[0] >> 2 & 3, at: place % 6_000, Array(bytes[3...].prefix(20_000)))
    guard var pair = try? EnginePair(context.client, context.server) else { return "no engines" }
    let toClient = bytes[0] & 1 == 1
    if case .alone(let alone) = change {
        return fault(toClient ? pair.client : pair.server, fedOnly: alone, pieces: place % 64 + 1)
    }
    let stream = Shared(Tampering(change))
    pair.tamper = { fromClient, bytes in
        if fromClient != toClient { stream.withLock { $0.apply(to: &bytes) } }
    }
    let outcome = pair.handshake()
    return fault(after: outcome, pair)
}

private func fault(after outcome: EnginePair.Outcome, _ pair: EnginePair) -> String? {
    let text = Array("what was written".utf8)
    for (source, target) in [(pair.client, pair.server), (pair.server, pair.client)]
    where source.isEstablished && source.failure == nil {
        guard (try? source.write(text)) != nil else { continue }
        pair.move()
        let read = target.readAll()
        guard text.starts(with: read.bytes) else { return "altered plaintext was read" }
        if read.bytes.isEmpty, case .bytes = read.end { return "no bytes, and no reason" }
    }
    for engine in [pair.client, pair.server] {
        engine.endInput()
        let end = engine.isEstablished ? engine.readAll().end.error : engine.end()
        if end == nil { return "an abrupt end is no error" }
    }
    return nil
}

private func fault(_ engine: TLSEngine, fedOnly bytes: [UInt8], pieces: Int) -> String? {
    var rest = bytes[...]
    var output = 0
    while !rest.isEmpty {
        engine.feed(rest.prefix(pieces))
        rest = rest.dropFirst(pieces)
        _ = engine.handshake()
        output += engine.output.count
        engine.sent(engine.output.count)
        engine.settle()
        if engine.failure != nil { break }
    }
    engine.endInput()
    if engine.end() == nil || engine.isEstablished { return "a handshake of one" }
    return output <= 100_000 ? nil : "\(output) bytes in answer to nothing"
}

extension TLSEngine {
    /// The error of a handshake whose input has ended.
    fileprivate func end() -> TLSError? {
        defer { settle() }
        if case .failed(let error) = handshake() { return error }
        return nil
    }
}

private enum Change {
    case altered([UInt8], at: Int)
    case inserted([UInt8], at: Int)
    case cut(at: Int)
    case alone([UInt8])

    init(_ kind: UInt8, at place: Int, _ bytes: [UInt8]) {
        self =
            switch kind {
            case 0: .altered(bytes, at: place)
            case 1: .inserted(bytes, at: place)
            case 2: .cut(at: place)
            default: .alone(bytes)
            }
    }
}

/// A change on its way through a stream of which pieces come by.
private struct Tampering {
    private let change: Change
    /// Of the piece that comes next.
    private var offset = 0

    init(_ change: Change) { self.change = change }

    mutating func apply(to piece: inout [UInt8]) {
        let begin = offset
        offset += piece.count
        switch change {
        case .altered(let bytes, let place):
            for (index, byte) in bytes.enumerated() {
                let target = place + index - begin
                if piece.indices.contains(target) { piece[target] ^= byte }
            }
        case .inserted(let bytes, let place):
            if (begin..<offset).contains(place) {
                piece.insert(contentsOf: bytes, at: place - begin)
            }
        case .cut(let place):
            piece.removeLast(max(0, min(piece.count, offset - place)))
        case .alone: break
        }
    }
}

/// What all handshakes share: made once, since a certificate takes longer than a handshake.
private struct Contexts: Sendable {
    struct Both: Sendable {
        let client: TLSContext
        let server: TLSContext
    }

    let newer: Both
    let older: Both

    static let all = try? Contexts()

    init() throws {
        let root = try TestAuthority()
        var client = TLSConfiguration(.client)
        var server = TLSConfiguration(.server)
        client.trust = .anchors([root.certificate])
        client.applicationProtocols = ["h2", "http/1.1"]
        server.identities = [try root.issue("DNS:localhost")]
        server.applicationProtocols = ["http/1.1"]
        newer = Both(client: try TLSContext(client), server: try TLSContext(server))
        client.maximumVersion = .tls12
        older = Both(client: try TLSContext(client), server: try TLSContext(server))
    }
}
