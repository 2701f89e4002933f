import Glibc

/// Lines for a person: results on standard output, the rest on standard error.
enum Console {
    static func say(_ line: String) { write(line, to: 1) }

    static func note(_ line: String) { write("echo-listener: \(line)", to: 2) }

    /// One write(2) for each line: they come from several threads, and may go to a pipe.
    private static func write(_ line: String, to descriptor: Int32) {
        let bytes = Array("\(line)\n".utf8)
        _ = Glibc.write(descriptor, bytes, bytes.count)
    }

    static func fail(_ message: String, status: Int32) -> Never {
        note(message)
        exit(status)
    }
}
