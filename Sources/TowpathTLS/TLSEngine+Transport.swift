internal import CTowpathOpenSSL

/// The engine's ciphertext, which is lent to it and by it.
extension TLSEngine {
    /// Lends bytes that came from the peer, and memory for what goes to it, until `settle()`.
    package func lend(input: UnsafeRawBufferPointer, output: UnsafeMutableRawBufferPointer) {
        if input.count > 0 {
            let rest = transport.pointee.in_count
            if rest > 0 {
                keep(UnsafeRawBufferPointer(start: transport.pointee.in, count: rest), input)
            } else {
                point(to: input)
            }
        }
        guard transport.pointee.out_count == 0, transport.pointee.own == nil else { return }
        transport.pointee.out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        transport.pointee.out_room = output.count
    }

    /// The peer will send nothing more.
    package func endInput() { transport.pointee.ended = 1 }

    /// What the peer is still to get.
    package var output: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: transport.pointee.out, count: transport.pointee.out_count)
    }

    package var hasOutput: Bool { transport.pointee.out_count > 0 }

    /// So much of the output is on its way.
    package func sent(_ count: Int) {
        let rest = transport.pointee.out_count - count
        if rest > 0, let out = transport.pointee.out {
            UnsafeMutableRawPointer(out).copyMemory(from: out + count, byteCount: rest)
        }
        transport.pointee.out_count = max(0, rest)
    }

    /// Gives back what was lent; what is left of it is kept here.
    package func settle() {
        let rest = transport.pointee.in_count
        if rest == 0 {
            free(kept)
            kept = nil
            transport.pointee.in = nil
        } else if !isKept(transport.pointee.in) {
            keep(UnsafeRawBufferPointer(start: transport.pointee.in, count: rest), nil)
        }
        if transport.pointee.out_count == 0 {
            free(transport.pointee.own)
            transport.pointee.own = nil
            transport.pointee.out = nil
            transport.pointee.out_room = 0
        } else if transport.pointee.own == nil, let copy = Self.copy(of: output) {
            transport.pointee.own = copy.assumingMemoryBound(to: UInt8.self)
            transport.pointee.out = transport.pointee.own
            transport.pointee.out_room = transport.pointee.out_count
        }
    }

    private func isKept(_ pointer: UnsafePointer<UInt8>?) -> Bool {
        guard let kept, let pointer else { return false }
        return UnsafeRawPointer(pointer) >= UnsafeRawPointer(kept)
            && UnsafeRawPointer(pointer) < UnsafeRawPointer(kept) + keptCount
    }

    private func keep(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer?) {
        let count = first.count + (second?.count ?? 0)
        guard let all = malloc(count) else { return }
        let target = UnsafeMutableRawBufferPointer(start: all, count: count)
        target.copyMemory(from: first)
        if let second {
            UnsafeMutableRawBufferPointer(rebasing: target[first.count...]).copyMemory(from: second)
        }
        free(kept)
        kept = all
        keptCount = count
        point(to: UnsafeRawBufferPointer(target))
    }

    private func point(to bytes: UnsafeRawBufferPointer) {
        transport.pointee.in = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        transport.pointee.in_count = bytes.count
    }

    private static func copy(of bytes: UnsafeRawBufferPointer) -> UnsafeMutableRawPointer? {
        let copy = malloc(bytes.count)
        if let copy, let base = bytes.baseAddress {
            copy.copyMemory(from: base, byteCount: bytes.count)
        }
        return copy
    }
}
