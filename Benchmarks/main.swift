import Foundation
import Towpath

// A benchmark is not a test: a missed bar leaves the exit status at 0. What cannot run at all
// ends with 1, a wrong command line with 2.
do {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.first == "serve" {
        serveUntilKilled(mode: arguments.dropFirst().first ?? "")
    } else {
        exit(try Driver(options: Options(parsing: arguments)).run() ? 0 : 1)
    }
} catch {
    fail(error)
}

/// Serves in a task while the main thread waits for a signal.
///
/// With `await` at the top level the main thread would end in `dispatch_main`, whose `sigsuspend`
/// crashes Valgrind 3.19.
func serveUntilKilled(mode: String) -> Never {
    Task(executorPreference: try? EventLoops.executor()) {
        do { try await serve(mode: mode) } catch { fail(error) }
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
