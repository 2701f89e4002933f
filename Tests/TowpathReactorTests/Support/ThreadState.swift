import CTowpathLinux
import TowpathReactor

/// What /proc knows of the calling thread.
enum ThreadState {
    static var name: String { String(read("/proc/thread-self/comm").dropLast()) }

    static var number: Int32 {
        read("/proc/thread-self/stat").split(separator: " ").first.flatMap { Int32($0) } ?? 0
    }

    /// The signals that the thread blocks, signal 1 as the lowest bit.
    static var blockedSignals: UInt64 {
        let line = read("/proc/thread-self/status").split(separator: "\n")
            .first { $0.hasPrefix("SigBlk:") }
        return line.flatMap { UInt64($0.drop { $0 != "\t" }.dropFirst(), radix: 16) } ?? 0
    }

    static func blocks(_ signal: Int32) -> Bool {
        blockedSignals & 1 << UInt64(signal - 1) != 0
    }
}

/// The text of a file of /proc.
func read(_ path: String) -> String {
    let file = Descriptor(owning: Int32(shim_open_read(path)))
    var buffer = [UInt8](repeating: 0, count: 16_384)
    let count = shim_read(file.number, &buffer, buffer.count)
    return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
}
