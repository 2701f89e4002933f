import Foundation
import TowpathWire

/// What WebSocket does to every byte, without a connection: the mask and the check of UTF-8.
enum Bytes: String, CaseIterable {
    case mask
    case ascii = "utf8-ascii"
    case mixed = "utf8-mixed"

    var name: String { "ws-\(rawValue)" }

    /// The processor time for 10⁹ bytes, beside C that does it in the same way.
    func rows(in bench: Bench) throws -> [Row] {
        var ours: [Double] = []
        var limit: [Double] = []
        var copies: [Double] = []
        for _ in 0..<bench.options.pairCount {
            ours.append(try bench.handle(rawValue, by: .ours))
            limit.append(try bench.handle(rawValue, by: .limit))
            if self == .mask { copies.append(try bench.handle("copy", by: .limit)) }
        }
        func row(_ name: String, _ limit: [Double]) -> Row {
            var row = Row.comparing(name, ours: ours, limit: limit, bar: nil, format: time)
            row.oursWall = Self.rate(ours)
            row.limitWall = Self.rate(limit)
            return row
        }
        return [row(name, limit)] + (copies.isEmpty ? [] : [row("  beside memcpy", copies)])
    }

    private static func rate(_ nanoseconds: [Double]) -> String {
        Spread(nanoseconds).map { decimal(1e9 / $0.median, places: 1) + " GB/s" } ?? ""
    }

    // MARK: The measured process

    private static let size = 16_384

    private var pattern: String {
        self == .mixed ? "Der Treidelpfad läuft übers Ufer, 曳舟道. " : "The towpath runs along. "
    }

    /// Prints what `Limits/bytes.c` does, of the same bytes.
    func measure(seconds: Double) throws {
        let repeated = String(repeating: pattern, count: Self.size / pattern.utf8.count)
        var bytes = Array(repeated.utf8)
        bytes += Array(repeating: UInt8(ascii: " "), count: Self.size - bytes.count)
        let begin = processorTime()
        var count = 0
        var time = begin
        repeat {
            // A different key or length each time, so that none is left out.
            for turn in 0..<64 { count += try handle(&bytes, turn: turn) }
            time = processorTime()
        } while time - begin < seconds
        emit("ns_per_GB=\(Int((time - begin) / Double(count) * 1e18))")
    }

    private func handle(_ bytes: inout [UInt8], turn: Int) throws -> Int {
        try bytes.withUnsafeMutableBytes { bytes in
            guard self != .mask else {
                WebSocketMask.apply(key: 0x1234_5678 &+ UInt32(turn), to: bytes)
                return bytes.count
            }
            var validator = UTF8Validator()
            let part = bytes[..<(bytes.count - turn % 2)]
            guard validator.consume(UnsafeRawBufferPointer(rebasing: part)) else {
                throw BenchmarkError("the text is no UTF-8")
            }
            return part.count
        }
    }
}

/// Of this process, in seconds.
private func processorTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
