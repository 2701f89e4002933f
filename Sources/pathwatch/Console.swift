import Glibc

/// Lines for a person: results on standard output, the rest on standard error.
enum Console {
    static func say(_ line: String) {
        // What cannot be told is no success.
        if !write(line, to: 1) {
            fail("standard output: \(String(cString: strerror(errno)))", status: 1)
        }
    }

    static func note(_ line: String) { _ = write("pathwatch: \(line)", to: 2) }

    static func fail(_ message: String, status: Int32) -> Never {
        note(message)
        exit(status)
    }

    private static func write(_ line: String, to descriptor: Int32) -> Bool {
        var bytes = Array("\(line)\n".utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            bytes = bytes.dropFirst(count)
        }
        return true
    }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    static var isTerminal: Bool { isatty(1) == 1 }

    static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
