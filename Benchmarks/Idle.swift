import Foundation

/// What a server costs that has nothing to do: memory and wake-ups.
enum Idle {
    /// Resident bytes per connection, each idle after one echo.
    struct Memory {
        let connections: Int
        let mode: String
        let bar: Bar

        static let all = [
            Memory(connections: 1_000, mode: "receive", bar: .value(atMost: 2_200)),
            Memory(connections: 10_000, mode: "receive", bar: .value(atMost: 2_200)),
            Memory(connections: 1_000, mode: "tls-receive", bar: .value(atMost: 17_000)),
            Memory(connections: 1_000, mode: "ws", bar: .value(atMost: 4_000)),
        ]

        var name: String {
            let layer = mode.split(separator: "-").first.map { "\($0)-" } ?? ""
            return "idle-memory-" + (mode == "receive" ? "" : layer) + String(connections)
        }
    }

    static func row(_ memory: Memory, in bench: Bench) throws -> Row {
        let load = [
            "idle", "--conns", String(memory.connections), "--spread", "--seconds", "0.1",
            "--warmup",
            "0.1",
        ]
        let bytes = try measured(in: bench, mode: memory.mode, load: load, key: "bytes_per_conn")
        return .comparing(
            memory.name, ours: [bytes.ours], limit: [bytes.limit], bar: memory.bar
        ) { decimal($0, places: 0) + " B" }
    }

    static let wakeUpsName = "idle-wakeups"

    /// How often the server woke while a hundred connections said nothing.
    ///
    /// Dispatch ends its own idle threads after five seconds, and each ending is a wake-up: the
    /// quick run is over before that, the long one begins after it.
    static func wakeUpsRow(in bench: Bench) throws -> Row {
        let (warmUp, seconds) = bench.options.quick ? ("0.2", "3") : ("6", "10")
        let load = ["idle", "--conns", "100", "--seconds", seconds, "--warmup", warmUp]
        let count = try measured(in: bench, mode: "echo", load: load, key: "srv_wakeups")
        return .comparing(
            "\(wakeUpsName) in \(seconds) s", ours: [count.ours], limit: [count.limit],
            bar: .value(atMost: 0)
        ) { decimal($0, places: 0) }
    }

    /// On fresh servers, but not before they have served somebody: what is loaded and allocated
    /// once is no cost of a connection.
    private static func measured(
        in bench: Bench, mode: String, load: [String], key: String
    ) throws -> (ours: Double, limit: Double) {
        func value(_ side: Bench.Side) throws -> Double {
            try bench.withServer(side, mode: mode) { server in
                _ = try bench.load(["pingpong", "--trips", "100"], on: server)
                let numbers = try bench.load(load, on: server)
                guard let value = numbers[key], numbers["errors"] == 0 else {
                    throw BenchmarkError("the idle connections did not last")
                }
                return value
            }
        }
        return (try value(.ours), try value(.limit))
    }
}
