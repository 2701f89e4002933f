import Towpath

/// What is printed, as people or programs want it.
struct Lines {
    private let options: Options
    private let isColored: Bool
    private(set) var count = 0
    private let start = Clock.monotonicNanoseconds
    /// What was heard, printed or not.
    private var heard: [Options.Kind: Int] = [:]

    init(_ options: Options) {
        self.options = options
        switch options.color {
        case .always: isColored = true
        case .never: isColored = false
        case .auto:
            isColored = Console.isTerminal && Console.environment("NO_COLOR") == nil
        }
    }

    mutating func path(_ path: Path, after old: Path?) {
        heard[.path, default: 0] += 1
        guard options.events.contains(.path) else { return }
        if options.isJSON {
            json("path", [("path", path.json)])
        } else {
            human("path", Self.text(path, after: old), path.status)
            if options.explains {
                path.explanation.split(separator: "\n").forEach { say("  \($0)") }
            }
        }
    }

    private static func text(_ path: Path, after old: Path?) -> String {
        guard let old, old.status != path.status else { return path.description }
        return "\(old.status.rawValue) -> \(path)"
    }

    mutating func event(_ event: NetworkEvent) {
        heard[event.shownKind, default: 0] += 1
        if event.isPort, !options.includesPorts { return }
        guard options.events.contains(event.shownKind) else { return }
        if let pattern = options.interfacePattern, event.kind != .gap,
            !PathMonitor.matches(event.interface ?? "", pattern)
        {
            return
        }
        if options.isJSON {
            var members: [(String, JSON)] = []
            if let name = event.interface {
                members.append(
                    (
                        "if",
                        .object([
                            ("index", .number(UInt64(event.index))), ("name", .string(name)),
                        ])
                    ))
            }
            members += [
                ("old", .strings(event.old)), ("new", .strings(event.new)),
                ("cause", .string(event.cause)),
            ]
            json(event.shownKind.rawValue, members)
        } else {
            human(event.shownKind.rawValue, event.cause, nil)
        }
    }

    /// Such as `3 path, 12 link in 4.250 s`.
    var statistics: String {
        let counts = Options.Kind.allCases.compactMap { kind in
            heard[kind].map { "\($0) \(kind.rawValue)" }
        }
        return counts.joined(separator: ", ") + " in \(Clock.seconds(since: start)) s"
    }

    private mutating func json(_ type: String, _ members: [(String, JSON)]) {
        count += 1
        let head: [(String, JSON)] = [
            ("v", .number(1)), ("ts", .string(Clock.utc)),
            ("mono", .number(Clock.monotonicNanoseconds)), ("n", .number(UInt64(count))),
            ("type", .string(type)),
        ]
        say(JSON.object(head + members).text)
    }

    private mutating func human(_ type: String, _ text: String, _ status: Path.Status?) {
        count += 1
        var words: [String] = []
        switch options.timestamps {
        case .local: words.append(Clock.timeOfDay(isUTC: false))
        case .utc: words.append(Clock.utc)
        case .rel: words.append("+" + Clock.seconds(since: start))
        case .none: break
        }
        words.append(type + String(repeating: " ", count: max(0, 5 - type.count)))
        words.append(colored(text, status))
        say(words.joined(separator: "  "))
    }

    private func colored(_ text: String, _ status: Path.Status?) -> String {
        guard isColored, let status else { return text }
        let color = status == .satisfied ? 32 : status == .unsatisfied ? 31 : 33
        return "\u{1B}[\(color)m\(text)\u{1B}[0m"
    }

    private func say(_ line: String) { Console.say(line) }
}

extension NetworkEvent {
    var shownKind: Options.Kind {
        switch kind {
        case .link: .link
        case .address: .addr
        case .route: .route
        case .rule: .rule
        case .dns: .dns
        case .gap: .gap
        case .namespace: .netns
        }
    }
}
