import Glibc
import Towpath

/// Follows the paths and events, and ends the process when it has what it was started for.
actor Watch {
    private enum Update: Sendable {
        case path(Path)
        case event(NetworkEvent)
        /// The conditions have held long enough, if this is still the same time that they do.
        case held(Int)
        /// Whether the host's name is.
        case known
        case unknown(String)
        case timeOver
        case signal(Int32)
    }

    private let options: Options
    private let monitor: PathMonitor
    private let runner: Runner?
    private let notifier: Notifier?
    private var lines: Lines
    private var last: Path?
    /// How often the conditions began to hold, and whether they do now.
    private var holdCount = 0
    private var holds = false
    private let (updates, sink) = AsyncStream<Update>.makeStream()

    init(_ options: Options) {
        self.options = options
        monitor = PathMonitor(options.monitor)
        runner =
            options.command.isEmpty
            ? nil : Runner(options.command, timeout: options.commandTimeout)
        notifier = options.notifies ? Notifier() : nil
        lines = Lines(options)
    }

    func run() async {
        startTimeout()
        if let failure = monitor.failure { Console.fail("\(failure)", status: 3) }
        if case .hostPort(.name(let name), _)? = options.monitor.endpoint {
            let sink = sink
            Task { sink.yield(await Self.isKnown(name) ? .known : .unknown(name)) }
        } else {
            start()
        }
        for await update in updates {
            switch update {
            case .path(let path): await show(path)
            case .event(let event): show(event)
            case .held(let number): if holds, number == holdCount { await finish() }
            case .known: start()
            case .unknown(let name): Console.fail("\(name): the name is unknown", status: 4)
            case .timeOver:
                Console.note("the time is over; \(monitor.currentPath)")
                end(124)
            // As a shell reports it.
            case .signal(let number): end(128 + number)
            }
            if let limit = options.lineLimit, lines.count >= limit { end(0) }
        }
    }

    nonisolated func end(by signal: Int32) { sink.yield(.signal(signal)) }

    private func end(_ status: Int32) -> Never {
        if options.tellsStatistics { Console.note(lines.statistics) }
        exit(status)
    }

    private static func isKnown(_ name: String) async -> Bool {
        let connection = Connection(
            to: .hostPort(host: .name(name), port: 9),
            parameters: Parameters().waitsForConnectivity(false)
        ) { UDP() }
        do { try await connection.start(timeout: .seconds(10)) } catch {
            return (error as? NetworkError)?.code != .nameNotFound
        }
        await connection.close()
        return true
    }

    private func start() {
        let (monitor, sink) = (monitor, sink)
        if !options.isOnce {
            Task { for await event in monitor.events { sink.yield(.event(event)) } }
        }
        Task { for await path in monitor { sink.yield(.path(path)) } }
    }

    /// From the start on, also while a name is looked up.
    private func startTimeout() {
        guard let timeout = options.timeout else { return }
        let sink = sink
        Task.detached {
            try await Task.sleep(for: timeout)
            sink.yield(.timeOver)
        }
    }

    private func show(_ path: Path) async {
        let old = last
        last = path
        lines.path(path, after: old)
        if options.isOnce { end(path.status == .satisfied ? 0 : 1) }
        if old != nil || options.runsInitially { await runner?.run(for: path, after: old) }
        await notifier?.tell(path, isReady: options.conditions.isEmpty)
        checkConditions()
    }

    private func show(_ event: NetworkEvent) {
        lines.event(event)
        checkConditions()
    }

    private func checkConditions() {
        guard let last, !options.conditions.isEmpty else { return }
        let interfaces = monitor.networkInterfaces
        let isMet = options.conditions.allSatisfy { $0.isMet(by: last, interfaces) }
        guard isMet != holds else { return }
        holds = isMet
        guard isMet else { return }
        holdCount += 1
        let (sink, number, hold) = (sink, holdCount, options.hold)
        guard hold > .zero else {
            sink.yield(.held(number))
            return
        }
        Task {
            try await Task.sleep(for: hold)
            sink.yield(.held(number))
        }
    }

    /// The conditions are met.
    private func finish() async {
        if let last { await notifier?.tell(last, isReady: true) }
        end(0)
    }
}
