import Glibc

/// Lines for a person: results on standard output, the rest on standard error.
enum Console {
    static func say(_ line: String) {
        // A reader that has gone ends the tool, as it ends any filter.
        if !write(line, to: 1) { exit(0) }
    }

    static func note(_ line: String) { _ = write("pathwatch: \(line)", to: 2) }

    static func fail(_ message: String, status: Int32) -> Never {
        note(message)
        exit(status)
    }

    private static func write(_ line: String, to descriptor: Int32) -> Bool {
        let bytes = Array("\(line)\n".utf8)
        return Glibc.write(descriptor, bytes, bytes.count) == bytes.count
    }

    static var isTerminal: Bool { isatty(1) == 1 }

    static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
