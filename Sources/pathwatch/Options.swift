import Towpath

/// The command line.
struct Options {
    static let version = "0.1.0"

    static let help = """
        usage: pathwatch [OPTIONS] [-- COMMAND ARGUMENTS...]

        Prints what this host can reach, and then a line for each change.

          --once                  print the path and end: 0 if satisfied, 1 if not
          --wait-for CONDITION    end with 0 once it is met (repeatable: all of them):
                                  satisfied, unsatisfied, ipv4, ipv6, dns, route, up:IF, carrier:IF,
                                  addr:IF, gone:IF
          --hold DURATION         they have to hold so long
          --timeout DURATION      end with 124 after that long
          --count N               end with 0 after N lines

          --to HOST               the path to a host instead of everywhere
          --from ADDRESS, --mark N, --uid N
                                  as for packets from there, with this mark, of this user
          --oif NAME              only by this interface
          --require TYPE, --prohibit TYPE
                                  wifi, cellular, wiredEthernet, loopback, other
          --expensive PATTERN, --constrained PATTERN, --ultra-constrained PATTERN
                                  what is known of interfaces by name, such as 'wwan*'
          -4, -6                  one address family only
          --netns NAME|PID|PATH   another network namespace
          --gateways              tell where the gateway does not answer, in JSON as
                                  gatewayReachable: true, false, or null if that is not known

          --events LIST           of path,link,addr,route,rule,dns,gap,netns (default: all but
                                  rule)
          --interface PATTERN     only events of these interfaces
          --all                   events of the ports of bridges and the like, too
          --coalesce DURATION     how long it has to be quiet before a path counts (20ms)
          --raw                   the same as --coalesce 0ms
          --json                  an object a line
          --explain               why, for each address family
          --timestamps utc|local|rel|none
                                  rel: seconds since the start
          --stats                 what was heard, on standard error, at the end
          --color auto|always|never

          --exec PROGRAM, -- COMMAND...
                                  run for each other path, without a shell, with PATHWATCH_STATUS,
                                  PATHWATCH_OLD_STATUS, _REASON, _IF, _IFINDEX, _TYPE, _GATEWAY,
                                  _IPV4, _IPV6, _DNS, _SEQ; one at a time, the newest path only
          --exec-initial          for the first path, too
          --exec-timeout DURATION kill its process group after that long (30s)
          --notify                tell systemd READY=1 with the first path, or once the conditions of
                                  --wait-for are met, and STATUS= with each

          --help, --version

        A duration is a number with ms, s, m or h. Exit status: 0 well, 1 unsatisfied with --once,
        2 wrong usage, 3 the network cannot be watched, 4 HOST is unknown, 124 time over,
        128+N signal N.
        """

    enum Command {
        case watch(Options)
        case print(String)
    }

    struct UsageError: Error {
        let message: String
    }

    enum Timestamps: String { case utc, local, rel, none }
    enum Color: String { case auto, always, never }
    enum Kind: String, CaseIterable { case path, link, addr, route, rule, dns, gap, netns }

    var monitor = PathMonitor.Configuration()
    var isOnce = false
    var conditions: [Condition] = []
    var hold: Duration = .zero
    var timeout: Duration?
    var lineLimit: Int?
    var events = Set(Kind.allCases).subtracting([.rule])
    var interfacePattern: String?
    var includesPorts = false
    var tellsStatistics = false
    var isJSON = false
    var explains = false
    var timestamps = Timestamps.local
    var color = Color.auto
    var command: [String] = []
    var runsInitially = false
    var commandTimeout: Duration = .seconds(30)
    var notifies = false

    static func parse(_ arguments: [String]) throws(UsageError) -> Command {
        var options = Options()
        var rest = arguments[...]
        while let option = rest.popFirst() {
            switch option {
            case "--help", "-h": return .print(help)
            case "--version": return .print("pathwatch \(version)")
            case "--":
                guard !rest.isEmpty else { throw UsageError(message: "-- needs a command") }
                options.command = Array(rest)
                rest = []
            default:
                if try options.parseFlag(option) { continue }
                if try options.parseSelector(option, &rest) { continue }
                try options.parseOther(option, &rest)
            }
        }
        return .watch(options)
    }

    private mutating func parseFlag(_ option: String) throws(UsageError) -> Bool {
        switch option {
        case "--once": isOnce = true
        case "--json": isJSON = true
        case "--all": includesPorts = true
        case "--stats": tellsStatistics = true
        case "--explain": explains = true
        case "--raw": monitor.coalescing = .zero
        case "--exec-initial": runsInitially = true
        case "--notify": notifies = true
        case "--gateways": monitor.watchesGateways = true
        case "-4": monitor.ipVersion = .ipv4
        case "-6": monitor.ipVersion = .ipv6
        default: return false
        }
        return true
    }

    private mutating func parseSelector(
        _ option: String, _ rest: inout ArraySlice<String>
    ) throws(UsageError) -> Bool {
        switch option {
        case "--to": monitor.endpoint = try host(option, &rest)
        case "--from": monitor.source = try address(option, &rest)
        case "--mark": monitor.mark = try number(option, &rest)
        case "--uid": monitor.user = try number(option, &rest)
        case "--oif": monitor.requiredInterface = try value(option, &rest)
        case "--require": monitor.requiredInterfaceType = try type(option, &rest)
        case "--prohibit": monitor.prohibitedInterfaceTypes.insert(try type(option, &rest))
        case "--expensive": monitor.expensiveInterfaces.append(try value(option, &rest))
        case "--constrained": monitor.constrainedInterfaces.append(try value(option, &rest))
        case "--ultra-constrained":
            monitor.ultraConstrainedInterfaces.append(try value(option, &rest))
        case "--netns": selectNamespace(try value(option, &rest))
        case "--coalesce": monitor.coalescing = try duration(option, &rest)
        default: return false
        }
        return true
    }

    private mutating func parseOther(
        _ option: String, _ rest: inout ArraySlice<String>
    ) throws(UsageError) {
        switch option {
        case "--wait-for": conditions.append(try condition(option, &rest))
        case "--hold": hold = try duration(option, &rest)
        case "--timeout": timeout = try duration(option, &rest)
        case "--count": lineLimit = Int(try number(option, &rest))
        case "--interface": interfacePattern = try value(option, &rest)
        case "--exec": command = [try value(option, &rest)]
        case "--exec-timeout": commandTimeout = try duration(option, &rest)
        case "--events": events = try kinds(option, &rest)
        case "--timestamps": timestamps = try choice(option, &rest, Timestamps.init(rawValue:))
        case "--color": color = try choice(option, &rest, Color.init(rawValue:))
        default: throw UsageError(message: "unknown argument \(option)")
        }
    }

    /// A name of ip-netns(8), the number of a process, or a file.
    private mutating func selectNamespace(_ text: String) {
        if text.contains("/") {
            monitor.namespace = text
        } else if Int32(text) != nil {
            monitor.namespace = "/proc/\(text)/ns/net"
        } else {
            monitor.namespace = "/run/netns/\(text)"
            let file = "/etc/netns/\(text)/resolv.conf"
            // Without one of its own, `ip netns exec` leaves the host's in place.
            if Console.exists(file) { monitor.resolverFile = file }
        }
    }

    // MARK: Values

    private func value(
        _ option: String, _ rest: inout ArraySlice<String>
    ) throws(UsageError) -> String {
        guard let value = rest.popFirst() else {
            throw UsageError(message: "\(option) needs a value")
        }
        return value
    }

    private func choice<Value>(
        _ option: String, _ rest: inout ArraySlice<String>, _ make: (String) -> Value?
    ) throws(UsageError) -> Value {
        let text = try value(option, &rest)
        guard let value = make(text) else {
            throw UsageError(message: "\(option) \(text): there is no such choice")
        }
        return value
    }

    private func number(
        _ option: String, _ rest: inout ArraySlice<String>
    ) throws(UsageError) -> UInt32 {
        let text = try value(option, &rest)
        guard let number = UInt32(text) else {
            throw UsageError(message: "\(option) \(text): not a number from 0 to 4294967295")
        }
        return number
    }

    private func duration(
        _ option: String, _ rest: inout ArraySlice<String>
    ) throws(UsageError) -> Duration {
        let text = try value(option, &rest)
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard let count = Int64(digits), count <= 1_000_000_000 else {
            throw UsageError(
                message: "\(option) \(text): a duration is a number with ms, s, m or h")
        }
        switch text.dropFirst(digits.count) {
        case "ms": return .milliseconds(count)
        case "s", "": return .seconds(count)
        case "m": return .seconds(count * 60)
        case "h": return .seconds(count * 3_600)
        default:
            throw UsageError(
                message: "\(option) \(text): a duration is a number with ms, s, m or h")
        }
    }

    private func type(
        _ option: String, _ rest: inout ArraySlice<String>
    ) throws(UsageError) -> InterfaceType {
        try choice(option, &rest, InterfaceType.init(rawValue:))
    }

    private func address(
        _ option: String, _ rest: inout ArraySlice<String>
    ) throws(UsageError) -> IPAddress {
        let text = try value(option, &rest)
        do throws(AddressError) { return try IPAddress(parsing: text) } catch {
            throw UsageError(message: "\(option): \(error)")
        }
    }

    private func host(
        _ option: String, _ rest: inout ArraySlice<String>
    ) throws(UsageError) -> Endpoint {
        let text = try value(option, &rest)
        do throws(AddressError) {
            return .hostPort(host: try Host(parsing: text), port: 0)
        } catch {
            throw UsageError(message: "\(option): \(error)")
        }
    }

    private func condition(
        _ option: String, _ rest: inout ArraySlice<String>
    ) throws(UsageError) -> Condition {
        let text = try value(option, &rest)
        guard let condition = Condition(text) else {
            throw UsageError(message: "\(option) \(text): there is no such condition")
        }
        return condition
    }

    private func kinds(
        _ option: String, _ rest: inout ArraySlice<String>
    ) throws(UsageError) -> Set<Kind> {
        var kinds: Set<Kind> = []
        for word in try value(option, &rest).split(separator: ",") {
            guard let kind = Kind(rawValue: String(word)) else {
                throw UsageError(message: "\(option): there is no event \(word)")
            }
            kinds.insert(kind)
        }
        return kinds
    }
}
