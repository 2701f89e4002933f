import Foundation
import Towpath

/// The path monitor that is measured, in the network namespace of that file.
///
/// Prints what `netlink watch` does, or with `list` what `netlink list` does; see `Limits/netlink.c`.
func watch(mode: String, namespace: String, count: Int) async throws {
    var configuration = PathMonitor.Configuration()
    configuration.namespace = namespace
    switch mode {
    // Each step of a change.
    case "watch", "watch-hop":
        configuration.coalescing = .zero
        try await watch(configuration, until: count)
    case "events":
        try await watchEvents(configuration, until: count)
    // As everybody has it, and for ever.
    case "quiet": try await watch(configuration, until: .max)
    case "list": try list(configuration, times: count)
    default: throw Options.Usage(message: "watch what? watch, watch-hop, events, quiet or list")
    }
}

private func watch(_ configuration: PathMonitor.Configuration, until last: Int) async throws {
    let monitor = PathMonitor(configuration)
    var changes: [(number: Int, time: UInt64)] = []
    for await path in monitor {
        let time = monotonicTime()
        if let failure = monitor.failure { throw failure }
        if changes.isEmpty { emit("ready") }
        changes.append((changeNumber(path.gateways.first), time))
        if changes.last?.number == last { break }
    }
    emit(changes.map { "\($0.number) \($0.time)" }.joined(separator: " "))
}

/// What the kernel announced, before the path is known.
private func watchEvents(_ configuration: PathMonitor.Configuration, until last: Int) async throws {
    let monitor = PathMonitor(configuration)
    if let failure = monitor.failure { throw failure }
    let events = monitor.events
    emit("ready")
    var changes: [(number: Int, time: UInt64)] = []
    for await event in events {
        let time = monotonicTime()
        let number = changeNumber(event.new["gateway"].flatMap { try? IPAddress(parsing: $0) })
        if number > 0 { changes.append((number, time)) }
        if number == last { break }
    }
    emit(changes.map { "\($0.number) \($0.time)" }.joined(separator: " "))
}

/// A monitor that is used for the first time lists everything, as one that has lost something does.
private func list(_ configuration: PathMonitor.Configuration, times: Int) throws {
    let durations = try (0..<times).map { _ in
        let begin = monotonicTime()
        let monitor = PathMonitor(configuration)
        guard monitor.currentPath.supportsIPv4, monitor.currentPath.supportsIPv6 else {
            throw BenchmarkError("the path is \(monitor.currentPath)")
        }
        return monotonicTime() - begin
    }
    emit(durations.map(String.init).joined(separator: " "))
}

/// Which change it shows: the gateway is 10.99.1.0 and the number.
private func changeNumber(_ gateway: IPAddress?) -> Int {
    guard case .v4(let gateway)? = gateway else { return 0 }
    return Int(gateway.rawValue) - 0x0A63_0100
}

private func monotonicTime() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
