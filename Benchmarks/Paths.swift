import Foundation

/// The path monitor beside a C program that reads what the kernel announces and keeps nothing.
struct Paths: Sendable {
    let name: String
    private let measure: @Sendable (Bench, Namespace) throws -> [Row]

    static let all = [
        Paths(name: "path-event") { try eventRows(in: $0, $1) },
        Paths(name: "path-idle-wakeups") { [try wakeUpsRow(in: $0, $1)] },
        Paths(name: "path-resync-1000") { [try resyncRow(in: $0, $1)] },
        Paths(name: "path-churn") { [try churnRow(in: $0, $1)] },
    ]

    /// Nothing where there can be no namespace, and says so.
    func rows(in bench: Bench) throws -> [Row] {
        if let obstacle = Namespace.obstacle {
            emit("\(name): left out, \(obstacle)")
            return []
        }
        return try measure(bench, try Namespace())
    }

    // MARK: From a change to the path

    /// How long it takes from a change to the one who waits for it: the median of each run.
    private static func eventRows(in bench: Bench, _ namespace: Namespace) throws -> [Row] {
        var events: [Double] = []
        var ours: [Double] = []
        var hopping: [Double] = []
        var limit: [Double] = []
        var asking: [Double] = []
        for _ in 0..<bench.options.pairCount {
            events.append(try latency(.ours, "events", in: bench, namespace))
            ours.append(try latency(.ours, "watch", in: bench, namespace))
            limit.append(try latency(.limit, "watch", in: bench, namespace))
            asking.append(try latency(.limit, "ask", in: bench, namespace))
            hopping.append(try latency(.ours, "watch-hop", in: bench, namespace))
        }
        func row(_ name: String, _ ours: [Double], _ limit: [Double], _ bar: Bar? = nil) -> Row {
            .comparing(name, ours: ours, limit: limit, bar: bar, format: time)
        }
        return [
            row("path-event", events, limit, .ratio(atMost: 1.5)),
            row("  the path, beside one that asks too", ours, asking),
            row("  the path -hop, beside one that asks too", hopping, asking),
        ]
    }

    private static func latency(
        _ side: Bench.Side, _ mode: String, in bench: Bench, _ namespace: Namespace
    ) throws -> Double {
        let count = bench.options.quick ? 50 : 200
        try namespace.resetGateway()
        let reader = try bench.watcher(side, mode: mode, count: count, in: namespace)
        defer { reader.terminate() }
        let changes = parsed(try bench.netlink(["change", String(count)], in: namespace))
        let heard = parsed(try reader.line(within: .seconds(10)))
        // One that comes while the path is evaluated is heard with the next.
        let latencies = changes.compactMap { change in
            heard.first { $0.number >= change.number }.map { Double($0.time - change.time) }
        }
        guard latencies.count == count, let spread = Spread(latencies) else {
            throw BenchmarkError("changes were not heard")
        }
        return spread.median
    }

    private static func parsed(_ line: String) -> [(number: Int, time: UInt64)] {
        let words = line.split(separator: " ")
        return stride(from: 0, to: words.count - 1, by: 2).compactMap { index in
            guard let number = Int(words[index]), let time = UInt64(words[index + 1]) else {
                return nil
            }
            return (number, time)
        }
    }

    // MARK: All anew

    private static let pairCount = 500

    /// How long it takes to list everything anew, with a thousand interfaces.
    private static func resyncRow(in bench: Bench, _ namespace: Namespace) throws -> Row {
        let pairs = try Namespace.pairs(pairCount, in: bench.limits.folder)
        _ = try ChildProcess.output(of: namespace.inside(pairs))
        defer { _ = try? ChildProcess.output(of: namespace.inside(Namespace.deletePairs)) }
        func duration(_ side: Bench.Side) throws -> Double {
            let times = bench.options.quick ? 4 : 10
            let lister = try bench.watcher(side, mode: "list", count: times, in: namespace)
            defer { lister.terminate() }
            let durations = try lister.line(within: .seconds(60)).split(separator: " ")
            return Spread(durations.compactMap { Double($0) })?.median ?? 0
        }
        var ours: [Double] = []
        var limit: [Double] = []
        for _ in 0..<bench.options.pairCount {
            ours.append(try duration(.ours))
            limit.append(try duration(.limit))
        }
        return .comparing(
            "path-resync-\(2 * pairCount)", ours: ours, limit: limit, bar: nil, format: time)
    }

    // MARK: While nothing changes for the path

    /// What it costs to hear of many interfaces that come and are set up.
    private static func churnRow(in bench: Bench, _ namespace: Namespace) throws -> Row {
        let count = bench.options.quick ? 100 : pairCount
        let pairs = try Namespace.pairs(count, in: bench.limits.folder)
        func processorTime(_ side: Bench.Side) throws -> Double {
            let costs = try costs(
                of: [side], in: bench, namespace, warmUp: "0.1", "0.2", command: pairs)
            _ = try ChildProcess.output(of: namespace.inside(Namespace.deletePairs))
            return costs.first?.processor ?? 0
        }
        var ours: [Double] = []
        var limit: [Double] = []
        for _ in 0..<bench.options.pairCount {
            ours.append(try processorTime(.ours))
            limit.append(try processorTime(.limit))
        }
        return .comparing(
            "path-churn of \(2 * count)", ours: ours, limit: limit, bar: nil, format: time)
    }

    /// See ``Idle/wakeUpsRow(in:)`` for the times. Both at once: neither does anything.
    private static func wakeUpsRow(in bench: Bench, _ namespace: Namespace) throws -> Row {
        let (warmUp, seconds) = bench.options.quick ? ("0.2", "3") : ("6", "10")
        let counts = try costs(
            of: [.ours, .limit], in: bench, namespace, warmUp: warmUp, seconds
        ).map(\.wakeUps)
        return .comparing(
            "path-idle-wakeups in \(seconds) s", ours: Array(counts.prefix(1)),
            limit: Array(counts.suffix(1)), bar: .value(atMost: 0)
        ) { decimal($0, places: 0) }
    }

    /// What the readers cost while the command runs and for some seconds after it.
    private static func costs(
        of sides: [Bench.Side], in bench: Bench, _ namespace: Namespace, warmUp: String,
        _ seconds: String, command: [String] = []
    ) throws -> [(processor: Double, wakeUps: Double)] {
        var readers: [ChildProcess] = []
        defer { for reader in readers { reader.terminate() } }
        for side in sides {
            readers.append(try bench.watcher(side, mode: "quiet", count: 0, in: namespace))
        }
        let identifiers = readers.map { String($0.identifier) }
        let line = try bench.netlink(
            ["measure", warmUp, seconds] + identifiers + ["--"] + command, in: namespace)
        let numbers = line.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
        guard numbers.count == 2 * readers.count, readers.allSatisfy(\.isRunning) else {
            throw BenchmarkError("a reader ended by itself")
        }
        return readers.indices.map { (numbers[2 * $0], numbers[2 * $0 + 1]) }
    }
}
