internal import CTowpathZlib

/// Raw deflate (RFC 1951) read piece by piece, with a bound on what comes out.
package struct Inflater: ~Copyable {
    package enum Failure: Error {
        case noMemory
        /// The bytes are no deflate, or point beyond the window.
        case malformed
        /// More would come out than the limit allows.
        case tooLarge
    }

    // zlib keeps a pointer to it.
    private let stream: UnsafeMutablePointer<z_stream>
    /// Whether what came ends with a whole block, and that with a byte.
    private var isBetweenBlocks = true

    /// - Parameter windowBits: 8 to 15.
    package init(windowBits: Int) throws(Failure) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        guard zlib_inflate_init(stream, Int32(windowBits)) == Z_OK else {
            stream.deallocate()
            throw .noMemory
        }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// Inflates all of the input behind what is in `output`, which gets no longer than `limit`.
    package mutating func inflate(
        _ input: [UInt8], into output: inout [UInt8], limit: Int
    ) throws(Failure) {
        try input.withUnsafeBufferPointer { bytes throws(Failure) in
            try inflate(UnsafeRawBufferPointer(bytes), into: &output, limit: limit)
        }
    }

    /// Ends a message with what its sender left out (RFC 7692 §7.2.2).
    ///
    /// Nothing if it is empty, or ends with a whole block by itself: zlib would then stay inside another
    /// one, and take the next message for the rest of it. A message that ends inside a block is malformed.
    package mutating func endMessage(into output: inout [UInt8], limit: Int) throws(Failure) {
        if !isBetweenBlocks { try inflate([0, 0, 0xFF, 0xFF], into: &output, limit: limit) }
        guard isBetweenBlocks else { throw .malformed }
    }

    private mutating func inflate(
        _ input: UnsafeRawBufferPointer, into output: inout [UInt8], limit: Int
    ) throws(Failure) {
        if input.isEmpty { return }
        var taken = 0
        while true {
            // One byte more than the limit shows that there is more.
            let room = min(max(input.count * 4, 1_024), min(65_535, limit - output.count) + 1)
            let before = (input: taken, output: output.count)
            let status = step(input, &taken, &output, room)
            let produced = output.count - before.output
            if taken > before.input || produced > 0 {
                // 128 behind the end of a block; the low bits count those of the last byte that are left.
                isBetweenBlocks =
                    status == Z_STREAM_END || stream.pointee.data_type & (128 | 63) == 128
            }
            if output.count > limit { throw .tooLarge }
            switch status {
            case Z_OK: break
            case Z_BUF_ERROR where taken == input.count: return
            case Z_STREAM_END:
                // The last block of a stream, though more may follow (RFC 7692 §7.2.3.5).
                guard inflateResetKeep(stream) == Z_OK else { throw .malformed }
            case Z_MEM_ERROR: throw .noMemory
            default: throw .malformed
            }
            // Room was left over: nothing is pending inside.
            if taken == input.count, produced < room { return }
        }
    }

    private func step(
        _ input: UnsafeRawBufferPointer, _ taken: inout Int, _ output: inout [UInt8], _ room: Int
    ) -> Int32 {
        let count = min(input.count - taken, Int(UInt32.max))
        let start = input.baseAddress.map { $0 + taken }
        stream.pointee.next_in = UnsafeMutablePointer(
            mutating: start?.assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = UInt32(count)
        let status = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: room) { target in
            stream.pointee.next_out = target.baseAddress
            stream.pointee.avail_out = UInt32(room)
            let status = CTowpathZlib.inflate(stream, Z_SYNC_FLUSH)
            let left = Int(stream.pointee.avail_out)
            output.append(
                contentsOf: UnsafeMutableBufferPointer(rebasing: target[..<(room - left)]))
            return status
        }
        taken += count - Int(stream.pointee.avail_in)
        stream.pointee.next_in = nil
        stream.pointee.next_out = nil
        return status
    }

    /// Forgets what earlier messages contained.
    package mutating func reset() {
        inflateReset(stream)
        isBetweenBlocks = true
    }
}
