import Glibc

do {
    switch try Options.parse(Array(CommandLine.arguments.dropFirst())) {
    case .print(let text): Console.say(text)
    case .watch(let options): await Watch(options).run()
    }
} catch {
    Console.fail("\(error.message); try --help", status: 2)
}
