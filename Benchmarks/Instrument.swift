import Foundation

/// A count of what a server does per round trip, exact where times are noisy.
///
/// A server is run for N round trips and another for 5 N, and the difference divided by 4 N: what
/// starting, accepting and ending cost falls out.
enum Instrument: String {
    case allocations, callgrind

    private static let connections = 16

    func name(mode: String) -> String { mode == "echo" ? rawValue : "\(rawValue)-\(mode)" }

    func row(mode: String, bar: Bar? = nil, in bench: Bench) throws -> Row {
        let ours = try perRoundTrip(.ours, mode: mode, in: bench)
        let limit = try perRoundTrip(.limit, mode: mode, in: bench)
        let places = self == .allocations ? 2 : 0
        return .comparing(name(mode: mode), ours: [ours], limit: [limit], bar: bar) {
            decimal($0, places: places)
        }
    }

    private func perRoundTrip(_ side: Bench.Side, mode: String, in bench: Bench) throws -> Double {
        let trips = 1_000
        let few = try total(side, mode: mode, tripsEach: trips, in: bench)
        let many = try total(side, mode: mode, tripsEach: 5 * trips, in: bench)
        // Ends a little differently from run to run, so that nothing may come out below zero.
        return max(0, (many - few) / Double(4 * trips * Self.connections))
    }

    private func total(
        _ side: Bench.Side, mode: String, tripsEach: Int, in bench: Bench
    ) throws -> Double {
        let record = bench.limits.folder.appending(path: "\(rawValue).\(mode).\(side)")
        try? FileManager.default.removeItem(at: record)
        let wrapper =
            self == .callgrind
            ? ["valgrind", "--tool=callgrind", "--callgrind-out-file=\(record.path)"] : []
        let environment =
            self == .allocations
            ? ["LD_PRELOAD": bench.limits.mallocCount, "MALLOCCOUNT_FILE": record.path] : [:]
        try bench.withServer(side, mode: mode, wrapper: wrapper, environment: environment) {
            let numbers = try bench.load(
                [
                    "pingpong", "--conns", String(Self.connections), "--size", "64",
                    "--trips", String(tripsEach),
                ], on: $0)
            guard numbers["errors"] == 0 else {
                throw BenchmarkError("connections were lost under \(rawValue)")
            }
        }
        return try read(record)
    }

    private func read(_ record: URL) throws -> Double {
        let data = try Data(contentsOf: record)
        switch self {
        case .allocations:
            guard data.count >= MemoryLayout<UInt64>.size else {
                throw BenchmarkError("the allocations were not counted")
            }
            return Double(data.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) })
        case .callgrind:
            let text = String(decoding: data, as: UTF8.self)
            let key = "totals: "
            guard let line = text.split(separator: "\n").last(where: { $0.hasPrefix(key) }),
                let total = Double(line.dropFirst(key.count))
            else { throw BenchmarkError("callgrind wrote no totals") }
            return total
        }
    }
}
