/// Bytes that were read from the kernel and not yet handed to a caller: what a receive of an exact
/// count or up to a delimiter has gathered so far.
struct InputBuffer {
    private var bytes: [UInt8] = []
    private var head = 0

    var count: Int { bytes.count - head }
    var isEmpty: Bool { head == bytes.count }

    mutating func append(_ new: UnsafeRawBufferPointer) {
        if isEmpty {
            bytes.removeAll(keepingCapacity: true)
            head = 0
        } else if head > 65_536, head > bytes.count / 2 {
            bytes.removeSubrange(..<head)
            head = 0
        }
        bytes.append(contentsOf: new)
    }

    /// Removes up to `maximum` bytes.
    mutating func take(_ maximum: Int) -> [UInt8] {
        let count = min(maximum, count)
        if head == 0, count == bytes.count {
            defer { bytes = [] }
            return bytes
        }
        let result = Array(bytes[head..<head + count])
        drop(count)
        return result
    }

    /// Moves up to the target's size out and returns how many bytes that were.
    mutating func take(into target: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(target.count, count)
        bytes.withUnsafeBytes { target.copyMemory(from: .init(rebasing: $0[head..<head + count])) }
        drop(count)
        return count
    }

    /// Lends all bytes to `body`, which says how many of them it took.
    mutating func consume(_ body: (UnsafeRawBufferPointer) -> Int) {
        drop(bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[head...])) })
    }

    /// How many bytes lie up to and including the first delimiter, searched from `offset` on.
    func end(of delimiter: [UInt8], from offset: Int) -> Int? {
        guard let first = delimiter.first else { return nil }
        return bytes.withUnsafeBufferPointer { bytes in
            var start = head + max(0, offset - delimiter.count + 1)
            while start + delimiter.count <= bytes.count {
                guard
                    let found = bytes[start..<bytes.count - delimiter.count + 1]
                        .firstIndex(of: first)
                else { return nil }
                if bytes[found..<found + delimiter.count].elementsEqual(delimiter) {
                    return found + delimiter.count - head
                }
                start = found + 1
            }
            return nil
        }
    }

    private mutating func drop(_ count: Int) {
        head += count
        // An idle connection keeps no buffer.
        if isEmpty { self = InputBuffer() }
    }
}
