internal import TowpathWire

/// What is wrong with how the bytes are inflated; nil if nothing is.
///
/// The low three bits of the first byte are the window's, less 8; the others are the limit in steps of 64
/// bytes. What comes out never exceeds the limit by more than the byte that shows it, and is the same
/// whether the rest comes whole or byte by byte; but what points back beyond a window below the largest one may
/// pass if it comes whole, since zlib sees all that comes out at once. Whatever came out is deflated and inflated again to the
/// same bytes, also as the second message of a context.
package func inflateFault(in bytes: [UInt8]) -> String? {
    guard let first = bytes.first else { return nil }
    let windowBits = 8 + Int(first & 7)
    let limit = Int(first >> 3) * 64
    let input = Array(bytes.dropFirst())
    let whole = inflated([input], windowBits, limit)
    let single = inflated(input.map { [$0] }, windowBits, limit)
    let isBeyondWindow = windowBits < 15 && single.failure == .malformed
    guard
        isBeyondWindow || whole.output == single.output && whole.failure == single.failure
    else {
        return "\(whole) at once, \(single) byte by byte"
    }
    switch whole.failure {
    case .noMemory: return "there is memory"
    case .tooLarge where whole.output.count != limit + 1: return "\(whole) is not too large"
    case nil where whole.output.count > limit, .malformed where whole.output.count > limit:
        return "\(whole.output.count) bytes, and the limit is \(limit)"
    default: break
    }
    return fault(whole.output, windowBits)
}

private func inflated(
    _ pieces: [[UInt8]], _ windowBits: Int, _ limit: Int
) -> (output: [UInt8], failure: Inflater.Failure?) {
    var output: [UInt8] = []
    do throws(Inflater.Failure) {
        var inflater = try Inflater(windowBits: windowBits)
        for piece in pieces { try inflater.inflate(piece, into: &output, limit: limit) }
        return (output, nil)
    } catch {
        return (output, error)
    }
}

private func fault(_ message: [UInt8], _ windowBits: Int) -> String? {
    do throws(Inflater.Failure) {
        var deflater = try Deflater(windowBits: windowBits, level: 1 + message.count % 9)
        var inflater = try Inflater(windowBits: windowBits)
        for _ in 0..<2 {
            var compressed: [UInt8] = []
            message.withUnsafeBytes { deflater.deflate($0, into: &compressed) }
            guard !compressed.isEmpty else { return "a message becomes nothing" }
            var again: [UInt8] = []
            try inflater.inflate(compressed, into: &again, limit: message.count)
            try inflater.endMessage(into: &again, limit: message.count)
            guard again == message else { return "\(message) becomes \(again)" }
        }
        return nil
    } catch {
        return "\(message) with \(windowBits) bits: \(error)"
    }
}
