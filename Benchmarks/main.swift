import Foundation
import Towpath

// A benchmark is not a test: a missed bar leaves the exit status at 0. What cannot run at all
// ends with 1, a wrong command line with 2.
do {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.first == "serve" {
        let mode = arguments.dropFirst().first ?? ""
        let files = Array(arguments.dropFirst(2))
        runAside(on: try? EventLoops.executor()) { try await serve(mode: mode, identity: files) }
    } else if arguments.first == "watch", arguments.count == 4, let count = Int(arguments[3]) {
        let (mode, namespace) = (arguments[1], arguments[2])
        runAside(on: mode.hasSuffix("-hop") ? nil : try? EventLoops.executor()) {
            try await watch(mode: mode, namespace: namespace, count: count)
        }
    } else if arguments.first == "bytes", arguments.count == 3,
        let bytes = Bytes(rawValue: arguments[1]), let seconds = Double(arguments[2])
    {
        try bytes.measure(seconds: seconds)
    } else {
        exit(try Driver(options: Options(parsing: arguments)).run() ? 0 : 1)
    }
} catch {
    fail(error)
}

/// Runs in a task to its end, while the main thread waits for a signal.
///
/// With `await` at the top level the main thread would end in `dispatch_main`, whose `sigsuspend`
/// crashes Valgrind 3.19.
func runAside(
    on executor: (any TaskExecutor)?, _ body: @escaping @Sendable () async throws -> Void
) -> Never {
    Task(executorPreference: executor) {
        do { try await body() } catch { fail(error) }
        exit(0)
    }
    while true { pause() }
}

/// Says what went wrong and ends the process.
nonisolated func fail(_ error: any Error) -> Never {
    guard let usage = error as? Options.Usage else {
        report("Benchmarks: \(error)")
        exit(1)
    }
    report(usage.message.isEmpty ? Options.help : "\(usage.message)\n\n\(Options.help)")
    exit(usage.message.isEmpty ? 0 : 2)
}
