/// Runs what was asked for and prints the table, line by line as it comes.
struct Driver {
    let options: Options

    /// A line or two of the table, by name.
    private struct Entry {
        let name: String
        let rows: (Bench) throws -> [Row]
    }

    init(options: Options) throws {
        self.options = options
    }

    /// Whether everything could be run.
    func run() throws -> Bool {
        let chosen = entries.filter { options.selects($0.name) }
        if chosen.isEmpty { throw Options.Usage(message: "nothing has such a name; see --list") }
        if options.list {
            for entry in chosen { emit(entry.name) }
            return true
        }
        let bench = try Bench(options: options)
        emit("CPU time of the server per operation (streams and bytes: per GB), then wall time.")
        emit("Medians of \(options.pairCount) pairs; ratios of adjacent runs.\n")
        emit(Row.header.text)
        var complete = true
        for entry in chosen {
            do {
                for row in try entry.rows(bench) { emit(row.text) }
            } catch {
                complete = false
                emit("\(entry.name): \(error)")
            }
        }
        return complete
    }

    private var entries: [Entry] {
        var entries = Work.all.map { work in
            Entry(name: work.name) { try work.rows(in: $0) }
        }
        entries += Idle.Memory.all.map { memory in
            Entry(name: memory.name) { [try Idle.row(memory, in: $0)] }
        }
        let most: [(String, Double?)] = [
            ("receive", 1), ("into", 0), ("tls-receive", nil), ("tls-into", nil), ("ws", nil),
        ]
        for (mode, most) in most {
            entries.append(
                Entry(name: Instrument.allocations.name(mode: mode)) {
                    let bar = most.map { Bar.value(atMost: $0) }
                    return [try Instrument.allocations.row(mode: mode, bar: bar, in: $0)]
                })
        }
        entries.append(Entry(name: Idle.wakeUpsName) { [try Idle.wakeUpsRow(in: $0)] })
        entries += Bytes.allCases.map { bytes in
            Entry(name: bytes.name) { try bytes.rows(in: $0) }
        }
        entries += Paths.all.map { path in
            Entry(name: path.name) { try path.rows(in: $0) }
        }
        guard options.callgrind else { return entries }
        for mode in ["echo", "into", "hop", "tls", "ws"] {
            entries.append(
                Entry(name: Instrument.callgrind.name(mode: mode)) {
                    [try Instrument.callgrind.row(mode: mode, in: $0)]
                })
        }
        return entries
    }
}
