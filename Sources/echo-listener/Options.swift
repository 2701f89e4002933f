import Towpath

/// The command line.
struct Options {
    static let version = "0.1.0"

    static let help = """
        usage: echo-listener [--tcp [ADDRESS:]PORT]... [--udp [ADDRESS:]PORT]... [--unix PATH]...
                             [--ws [ADDRESS:]PORT]... [--tls [ADDRESS:]PORT]...
                             [--wss [ADDRESS:]PORT]... [--cert FILE --key FILE | --self-signed]
                             [--connection-limit N] [--idle-timeout SECONDS] [--stats SECONDS]
                             [--quiet]

        Sends back what it receives, and prints each address it is bound to.

          --tcp [ADDRESS:]PORT     listen for TCP; without an address on all of both families;
                                   port 0 lets the kernel choose
          --udp [ADDRESS:]PORT     listen for UDP
          --ws [ADDRESS:]PORT      listen for WebSocket, on any path
          --tls [ADDRESS:]PORT     listen for TLS
          --wss [ADDRESS:]PORT     listen for WebSocket through TLS
          --cert FILE, --key FILE  the certificate, with the chain behind it, and its key: PEM or DER
          --self-signed            make both in memory, and print the pin of the key
          --unix PATH              listen on a Unix socket; @NAME is an abstract one
          --connection-limit N     at most N connections at a time, for each listener
          --idle-timeout SECONDS   end a connection that is silent for so long
                                   (default: never for streams, 60 for UDP)
          --stats SECONDS          print connections, bytes and rates every so often
          --quiet                  print errors only
          --help, --version

        SIGINT and SIGTERM end it in good order; a second one ends it at once.
        Exit status: 0 ended by a signal, 1 cannot listen, 2 wrong usage.
        """

    enum Listening {
        case stream(Endpoint)
        case datagrams(Endpoint)
        case secure(Endpoint)
        case webSocket(Endpoint)
        case secureWebSocket(Endpoint)

        var isSecure: Bool {
            switch self {
            case .secure, .secureWebSocket: true
            case .stream, .datagrams, .webSocket: false
            }
        }
    }

    enum Command {
        case listen(Options)
        case print(String)
    }

    struct UsageError: Error {
        let message: String
    }

    var listeners: [Listening] = []
    var certificateFile: String?
    var keyFile: String?
    var isSelfSigned = false
    var connectionLimit: Int?
    var idleTimeout: Duration?
    var statisticsInterval: Int?
    var isQuiet = false

    static func parse(_ arguments: [String]) throws(UsageError) -> Command {
        var options = Options()
        var rest = arguments[...]
        while let option = rest.popFirst() {
            switch option {
            case "--help", "-h": return .print(help)
            case "--version": return .print("echo-listener \(version)")
            case "--quiet": options.isQuiet = true
            case "--self-signed": options.isSelfSigned = true
            case "--cert": options.certificateFile = try value(option, &rest)
            case "--key": options.keyFile = try value(option, &rest)
            case "--tls":
                options.listeners.append(.secure(try endpoint(option, &rest)))
            case "--ws":
                options.listeners.append(.webSocket(try endpoint(option, &rest)))
            case "--wss":
                options.listeners.append(.secureWebSocket(try endpoint(option, &rest)))
            case "--tcp":
                options.listeners.append(.stream(try endpoint(option, &rest)))
            case "--udp":
                options.listeners.append(.datagrams(try endpoint(option, &rest)))
            case "--unix":
                let name = try value(option, &rest)
                let isAbstract = name.hasPrefix("@")
                options.listeners.append(
                    .stream(isAbstract ? .abstract(String(name.dropFirst())) : .unix(name)))
            case "--connection-limit":
                options.connectionLimit = try number(option, &rest, 1...Int(Int32.max))
            case "--idle-timeout":
                options.idleTimeout = .seconds(try number(option, &rest, 1...Int(Int32.max)))
            case "--stats":
                options.statisticsInterval = try number(option, &rest, 1...86_400)
            default:
                throw UsageError(message: "unknown argument \(option)")
            }
        }
        guard !options.listeners.isEmpty else {
            throw UsageError(
                message: "nothing to listen on: give --tcp, --tls, --udp, --unix, --ws or --wss")
        }
        try options.checkIdentity()
        return .listen(options)
    }

    private func checkIdentity() throws(UsageError) {
        let hasFiles = certificateFile != nil && keyFile != nil
        let hasOne = certificateFile != nil || keyFile != nil
        let isSecure = listeners.contains(where: \.isSecure)
        if isSecure, hasFiles == isSelfSigned || hasOne != hasFiles {
            throw UsageError(message: "--tls and --wss need --cert and --key, or --self-signed")
        }
        if !isSecure, hasOne || isSelfSigned {
            throw UsageError(message: "--cert, --key and --self-signed are for --tls and --wss")
        }
    }

    private static func value(
        _ option: String, _ rest: inout ArraySlice<String>
    ) throws(UsageError) -> String {
        guard let value = rest.popFirst() else {
            throw UsageError(message: "\(option) needs a value")
        }
        return value
    }

    private static func endpoint(
        _ option: String, _ rest: inout ArraySlice<String>
    ) throws(UsageError) -> Endpoint {
        let text = try value(option, &rest)
        let endpoint: Endpoint
        do throws(AddressError) { endpoint = try Endpoint.parseListener(text) } catch {
            throw UsageError(message: "\(option): \(error)")
        }
        guard endpoint.port != nil else {
            throw UsageError(message: "\(option) \(text): Unix sockets are for --unix")
        }
        return endpoint
    }

    private static func number(
        _ option: String, _ rest: inout ArraySlice<String>, _ range: ClosedRange<Int>
    ) throws(UsageError) -> Int {
        let text = try value(option, &rest)
        guard let number = Int(text), range.contains(number) else {
            throw UsageError(
                message: "\(option) \(text): not a number from \(range.lowerBound)"
                    + " to \(range.upperBound)")
        }
        return number
    }
}
