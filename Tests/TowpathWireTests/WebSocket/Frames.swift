import TestSupport
import Testing
import TowpathWire

/// Bytes from hexadecimal numbers: `82 7F 00`.
func hex(_ text: String) -> [UInt8] {
    text.split(separator: " ").compactMap { UInt8($0, radix: 16) }
}

/// A frame by hand, with the shortest length that there is; the key's first byte is its highest one.
func frame(_ first: UInt8, _ payload: [UInt8] = [], key: UInt32? = nil) -> [UInt8] {
    var frame = [first]
    switch payload.count {
    case 0...125: frame.append(UInt8(payload.count))
    case 126...65_535:
        frame += [126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
    default: frame += [127] + (0..<8).reversed().map { UInt8(payload.count >> ($0 * 8) & 0xFF) }
    }
    guard let key else { return frame + payload }
    frame[1] |= 0x80
    let octets = (0..<4).map { UInt8(truncatingIfNeeded: key >> ((3 - $0) * 8)) }
    return frame + octets + payload.enumerated().map { $1 ^ octets[$0 % 4] }
}

/// The same frame as a client sends it, with this key; its payload is masked as far as it is there.
func masked(_ frame: [UInt8], key: UInt32 = 0x37FA_213D) -> [UInt8] {
    let count = [126: 4, 127: 10][frame[1] & 0x7F] ?? 2
    let octets = (0..<4).map { UInt8(truncatingIfNeeded: key >> ((3 - $0) * 8)) }
    return [frame[0], frame[1] | 0x80] + frame[2..<count] + octets
        + frame[count...].enumerated().map { $1 ^ octets[$0 % 4] }
}

/// What a session heard, and the code that it failed with.
struct Heard: Equatable {
    var events: [WebSocketSession.Event] = []
    var code: WebSocketCloseCode?

    init(_ events: WebSocketSession.Event..., failing code: WebSocketCloseCode? = nil) {
        self.events = events
        self.code = code
    }
}

extension WebSocketSession.Event {
    static func text(_ text: String) -> Self { .message(.text(text)) }
    static func binary(_ bytes: [UInt8]) -> Self { .message(.binary(bytes)) }
}

extension WebSocketSession {
    /// Gives it these pieces, one after the other, until it fails.
    mutating func hear(_ pieces: [[UInt8]]) -> Heard {
        var heard = Heard()
        for piece in pieces where heard.code == nil {
            piece.withUnsafeBytes { piece in
                var rest = piece
                do throws(WebSocketError) {
                    while let event = try next(&rest) { heard.events.append(event) }
                    // Not #expect: that would take most of the time where bytes come one by one.
                    if !rest.isEmpty { Issue.record("no event, and not all of the input is taken") }
                } catch {
                    heard.code = error.code
                    #expect(!error.message.isEmpty)
                }
            }
        }
        return heard
    }

    /// Gives it these bytes at once.
    mutating func hear(_ bytes: [UInt8]) -> Heard { hear([bytes]) }

    /// A frame of a whole message.
    mutating func frame(_ message: WebSocketMessage, key: UInt32? = nil) -> [UInt8] {
        var output: [UInt8] = []
        let bytes = message.bytes
        let opcode: WebSocketOpcode = if case .text = message { .text } else { .binary }
        bytes.withUnsafeBytes {
            append(
                opcode, $0, compressing: compresses(bytes.count), maskKey: key, to: &output)
        }
        return output
    }
}

extension [UInt8] {
    /// Pieces of up to this many bytes.
    func split(upTo count: Int, _ random: inout SplitMix64) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var rest = self[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 1...count, using: &random))
            pieces.append(Array(piece))
            rest = rest[piece.endIndex...]
        }
        return pieces
    }
}

/// What a new session makes of the bytes: the same whether they come whole, one by one, or in pieces of
/// any size.
func heard(
    _ bytes: [UInt8], by role: WebSocketSession.Role = .client,
    limits: WebSocketSession.Limits = .init(), deflate: PermessageDeflate? = nil,
    compression: PermessageDeflate.Configuration = .init(),
    sourceLocation: SourceLocation = #_sourceLocation
) -> Heard {
    func heard(_ pieces: [[UInt8]]) -> Heard {
        var session = WebSocketSession(
            role, limits: limits, deflate: deflate, compression: compression)
        return session.hear(pieces)
    }
    let whole = heard([bytes])
    var random = SplitMix64(seed: UInt64(bytes.count))
    #expect(heard(bytes.map { [$0] }) == whole, "one by one", sourceLocation: sourceLocation)
    for count in [2, 7, 100] {
        let pieces = bytes.split(upTo: count, &random)
        #expect(heard(pieces) == whole, "up to \(count)", sourceLocation: sourceLocation)
    }
    return whole
}

extension WebSocketSession.Limits {
    /// Messages up to this size, and frames.
    init(message: Int, frame: Int? = nil) {
        self.init()
        maximumMessageSize = message
        maximumFrameSize = frame
    }
}

extension PermessageDeflate.Configuration {
    init(
        windowBits: Int, keepsContext: Bool = true, minimumSize: Int = 0, level: Int = 6,
        maximumExpansion: Int? = nil
    ) {
        self.init()
        self.windowBits = windowBits
        self.keepsContext = keepsContext
        self.minimumSize = minimumSize
        self.level = level
        self.maximumExpansion = maximumExpansion
    }
}
