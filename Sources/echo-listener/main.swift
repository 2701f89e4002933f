import Glibc
import Towpath

/// Serves on the event loops, while the main thread waits for signals and prints statistics: an idle
/// process never wakes up.
func serve(_ options: Options) -> Never {
    Process.prepare()
    do {
        Task(executorPreference: try EventLoops.executor()) {
            do {
                let service = try await EchoService(options)
                Process.hand(over: service)
                if !options.isQuiet { service.boundAddresses.forEach(Console.say) }
                if let pin = service.pin { Console.say("pin \(pin)") }
                try await service.run()
                exit(0)
            } catch {
                Console.fail("\(error)", status: 1)
            }
        }
    } catch {
        Console.fail("\(error)", status: 1)
    }
    Process.waitForSignals(statisticsEvery: options.statisticsInterval)
}

do {
    switch try Options.parse(Array(CommandLine.arguments.dropFirst())) {
    case .print(let text): Console.say(text)
    case .listen(let options): serve(options)
    }
} catch {
    Console.fail("\(error.message); try --help", status: 2)
}
