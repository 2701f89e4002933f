import Glibc

do {
    switch try Options.parse(Array(CommandLine.arguments.dropFirst())) {
    case .print(let text): Console.say(text)
    case .watch(let options):
        Signals.block()
        let watch = Watch(options)
        Task.detached { await watch.run() }
        watch.end(by: Signals.wait())
        while true { pause() }
    }
} catch {
    Console.fail("\(error.message); try --help", status: 2)
}
