/// A work that both servers do in turn, measured by what it costs them.
struct Work {
    /// What one cost is the cost of.
    enum Unit { case operation, gigabyte }

    let name: String
    let mode: String
    let load: [String]
    var transport = "tcp"
    var unit = Unit.operation
    var bar: Bar?
    /// A second line: the 99.9th percentile of latency against the median.
    var tailBar: Bar?
    /// A second line: how much is done per second.
    var rateBar: Bar?
    /// Whom ours is measured beside.
    var beside = Bench.Side.limit

    static let all: [Work] =
        [
            echo(size: 64, connections: 1),
            echo(size: 64, connections: 64),
            echo(size: 64, connections: 1_000, tailBar: .value(atMost: 3)),
            echo(size: 4_096, connections: 1),
            echo(size: 4_096, connections: 64),
            echo(size: 4_096, connections: 1_000),
            echo(size: 64, connections: 64, mode: "receive"),
            echo(size: 64, connections: 64, mode: "into"),
            echo(size: 64, connections: 64, mode: "hop", bar: nil),
            Work(
                name: "tcp-stream", mode: "echo", load: ["stream", "--size", "65536"],
                unit: .gigabyte, bar: .ratio(atMost: 1.1)),
            Work(
                name: "tcp-connect", mode: "echo", load: ["connect", "--conns", "16"],
                bar: .ratio(atMost: 1.5)),
            Work(
                name: "udp-echo-64x64", mode: "udp", load: ["udp", "--conns", "64"],
                transport: "udp", bar: .ratio(atMost: 1.25)),
            echo(size: 64, connections: 64, mode: "tls", bar: nil),
            echo(size: 4_096, connections: 64, mode: "tls", bar: nil),
            Work(
                name: "tls-stream", mode: "tls", load: ["stream", "--size", "65536"],
                unit: .gigabyte, bar: .ratio(atMost: 0.9)),
            Work(
                name: "tls-connect", mode: "tls", load: ["connect", "--conns", "16"],
                bar: .ratio(atMost: 1.05)),
            Work(
                name: "tls-connect-resumed", mode: "tls",
                load: ["connect", "--conns", "16", "--resume"],
                bar: .ratio(atMost: 1.05)),
        ] + WebSocketWorks.all

    private static func echo(
        size: Int, connections: Int, mode: String = "echo", bar: Bar? = .ratio(atMost: 1.2),
        tailBar: Bar? = nil
    ) -> Work {
        Work(
            name: (mode == "tls" ? "tls" : "tcp") + "-echo-\(size)x\(connections)"
                + (["echo", "tls"].contains(mode) ? "" : "-\(mode)"),
            mode: mode,
            load: ["pingpong", "--size", String(size), "--conns", String(connections)],
            bar: bar, tailBar: tailBar)
    }

    /// Runs the two in alternation and returns its lines of the table.
    func rows(in bench: Bench) throws -> [Row] {
        if let obstacle = obstacle(in: bench) {
            emit("\(name): left out, \(obstacle)")
            return []
        }
        return try bench.withServer(beside, mode: mode) { limit in
            try bench.withServer(.ours, mode: mode) { ours in
                var pairs: [(ours: Cost, limit: Cost)] = []
                for _ in 0..<bench.options.pairCount {
                    pairs.append((try cost(ours, in: bench), try cost(limit, in: bench)))
                }
                return rows(for: pairs)
            }
        }
    }

    /// Why there is nobody to be measured beside, or nil.
    private func obstacle(in bench: Bench) -> String? {
        guard case .peer(let peer) = beside else { return nil }
        return bench.options.server == "limit" ? "it is not beside C" : peer.obstacle
    }

    /// What one run cost the server, each in nanoseconds per operation or per gigabyte.
    private struct Cost {
        let processor, wall: Double
        let tail: Double?
        let troubles: Double
    }

    private func cost(_ server: Server, in bench: Bench) throws -> Cost {
        let numbers = try bench.load(
            load + bench.options.durations, on: server, transport: transport)
        guard let operations = numbers["ops"], operations > 0, let seconds = numbers["secs"],
            let perOperation = numbers["srv_cpu_ns_per_op"]
        else { throw BenchmarkError("\(name): no operation came to its end") }
        let tail =
            if let high = numbers["p999_us"], let middle = numbers["p50_us"] {
                high / middle
            } else { nil as Double? }
        let troubles = (numbers["errors"] ?? 0) + (numbers["lost"] ?? 0)
        switch unit {
        case .operation:
            return Cost(
                processor: perOperation, wall: seconds / operations * 1e9, tail: tail,
                troubles: troubles)
        case .gigabyte:
            guard let processor = numbers["srv_cpu_s_per_GB"], let rate = numbers["MBps"] else {
                throw BenchmarkError("\(name): no bytes came back")
            }
            return Cost(
                processor: processor * 1e9, wall: 1e12 / rate, tail: tail, troubles: troubles)
        }
    }

    private func rows(for pairs: [(ours: Cost, limit: Cost)]) -> [Row] {
        let troubles = pairs.reduce(0) { $0 + $1.ours.troubles + $1.limit.troubles }
        let label = troubles == 0 ? name : "\(name) (\(Int(troubles)) errors)"
        var row = Row.comparing(
            label, ours: pairs.map(\.ours.processor), limit: pairs.map(\.limit.processor),
            bar: bar, format: time)
        row.oursWall = Spread(pairs.map(\.ours.wall)).map { time($0.median) } ?? ""
        row.limitWall = Spread(pairs.map(\.limit.wall)).map { time($0.median) } ?? ""
        if let rateBar {
            // A gigabyte in so many nanoseconds.
            let rate = Row.comparing(
                "  its MB/s", ours: pairs.map { 1e12 / $0.ours.wall },
                limit: pairs.map { 1e12 / $0.limit.wall }, bar: rateBar
            ) { decimal($0, places: 0) }
            return [row, rate]
        }
        guard let tailBar else { return [row] }
        let tail = Row.comparing(
            "  its p99.9 / p50", ours: pairs.compactMap(\.ours.tail),
            limit: pairs.compactMap(\.limit.tail), bar: tailBar
        ) { decimal($0, places: 2) }
        return [row, tail]
    }
}

extension Row {
    /// The median of each side, and that of the ratios of adjacent runs.
    static func comparing(
        _ work: String, ours: [Double], limit: [Double], bar: Bar?, format: (Double) -> String
    ) -> Row {
        var row = Row(work: work)
        guard let oursSpread = Spread(ours), let limitSpread = Spread(limit) else { return row }
        row.ours = format(oursSpread.median)
        row.limit = format(limitSpread.median)
        let ratios = Spread(zip(ours, limit).filter { $1 > 0 }.map { $0 / $1 })
        if let ratios {
            let ends = [ratios.minimum, ratios.maximum].map { decimal($0, places: 2) }
            row.ratio = decimal(ratios.median, places: 2)
            if ours.count > 1 { row.ratio += " [\(ends[0])–\(ends[1])]" }
        }
        row.bar = bar?.text ?? ""
        row.verdict = bar?.verdict(ratio: ratios?.median, value: oursSpread.median) ?? ""
        return row
    }
}
