import Foundation

/// The command line of the driver.
struct Options {
    /// A command line that is wrong; with an empty message, one that asks for help.
    struct Usage: Error {
        let message: String
    }

    static let help = """
        usage: Benchmarks [OPTIONS] [NAME...]     runs the works whose names contain a NAME, or all
               Benchmarks serve MODE              is the server: echo, receive, into, hop, udp, ws or
                                                  ws-deflate
               Benchmarks serve MODE CERTIFICATE KEY
                                                  the same through TLS: tls, tls-receive or tls-into
               Benchmarks watch MODE NAMESPACE COUNT
                                                  is the path monitor: watch, watch-hop, quiet or list
               Benchmarks bytes mask|utf8-ascii|utf8-mixed SECONDS
                                                  does so to bytes, over and over

          --quick           short runs, the whole in about a minute
          --rounds N        pairs of runs for each ratio (7; quick: 3)
          --callgrind       instructions per round trip as well (slow; needs valgrind)
          --list            names of the works
          --server PATH     instead of this program's own server: `PATH serve MODE`;
                            PATH `limit` is the C program, so that every ratio should be 1
          --build FOLDER    where the C programs are built (.build/benchmarks)
        """

    var quick = false
    var rounds: Int?
    var callgrind = false
    var list = false
    var server: String?
    var buildFolder: URL?
    var names: [String] = []

    init(parsing arguments: [String]) throws {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--quick": quick = true
            case "--callgrind": callgrind = true
            case "--list": list = true
            case "--help": throw Usage(message: "")
            case "--rounds", "--server", "--build":
                guard let value = rest.popFirst() else {
                    throw Usage(message: "\(argument) needs a value")
                }
                try set(argument, to: value)
            default:
                if argument.hasPrefix("-") { throw Usage(message: "\(argument) is unknown") }
                names.append(argument)
            }
        }
    }

    private mutating func set(_ option: String, to value: String) throws {
        switch option {
        case "--server": server = value
        case "--build": buildFolder = URL(filePath: value)
        default:
            guard let count = Int(value), count > 0 else {
                throw Usage(message: "--rounds needs a number above 0")
            }
            rounds = count
        }
    }

    /// Pairs of runs behind each ratio.
    var pairCount: Int { rounds ?? (quick ? 3 : 7) }

    /// How long one run is measured, and how long it runs before that.
    var durations: [String] {
        quick ? ["--seconds", "0.25", "--warmup", "0.1"] : ["--seconds", "1", "--warmup", "0.3"]
    }

    func selects(_ name: String) -> Bool {
        names.isEmpty || names.contains { name.contains($0) }
    }
}
