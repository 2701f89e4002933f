internal import CTowpathZlib

/// Raw deflate (RFC 1951) made message by message.
package struct Deflater: ~Copyable {
    // zlib keeps a pointer to it.
    private let stream: UnsafeMutablePointer<z_stream>

    /// - Parameters:
    ///   - windowBits: 8 to 15. zlib makes no raw deflate with 8; what it makes with 9 never points
    ///     further back than 8 allow, since it keeps 262 bytes of the window free.
    ///   - level: 1, the fastest, to 9.
    package init(windowBits: Int, level: Int) throws(Inflater.Failure) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        let bits = max(9, windowBits)
        // A hash as large as the window needs, no larger: 15 bits go with 8, zlib's default.
        guard zlib_deflate_init(stream, Int32(level), Int32(bits), Int32(bits - 7)) == Z_OK else {
            stream.deallocate()
            throw .noMemory
        }
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    /// Appends a message as RFC 7692 §7.2.1 has it: an empty block closes it, without its last four
    /// bytes. Of a part that others follow these stay: they are the next one's beginning.
    package mutating func deflate(
        _ message: UnsafeRawBufferPointer, isFinal: Bool = true, into output: inout [UInt8]
    ) {
        let before = output.count
        var taken = 0
        repeat {
            let count = min(message.count - taken, Int(UInt32.max))
            let room = min(65_536, count / 2 + 64)
            let left = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: room) { target in
                let start = message.baseAddress.map { $0 + taken }
                stream.pointee.next_in = UnsafeMutablePointer(
                    mutating: start?.assumingMemoryBound(to: UInt8.self))
                stream.pointee.avail_in = UInt32(count)
                stream.pointee.next_out = target.baseAddress
                stream.pointee.avail_out = UInt32(room)
                _ = CTowpathZlib.deflate(stream, Z_SYNC_FLUSH)
                let left = Int(stream.pointee.avail_out)
                output.append(
                    contentsOf: UnsafeMutableBufferPointer(rebasing: target[..<(room - left)]))
                return left
            }
            taken += count - Int(stream.pointee.avail_in)
            if taken == message.count, left > 0 { break }
        } while true
        stream.pointee.next_in = nil
        stream.pointee.next_out = nil
        guard isFinal else { return }
        if output.count - before >= 4, output.suffix(4).elementsEqual([0, 0, 0xFF, 0xFF]) {
            output.removeLast(4)
        }
        // Nothing to say: the first byte of an empty block (RFC 7692 §7.2.3.6).
        if output.count == before { output.append(0) }
    }

    /// Forgets what earlier messages contained.
    package mutating func reset() { deflateReset(stream) }
}
