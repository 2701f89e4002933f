import CTowpathLinux
import Foundation
import Glibc

/// A program that runs beside a test: its lines as they come, and how it ended. Killed with its
/// last reference.
///
/// Not Foundation's `Process`, which hears of an exit only when the last copy of a descriptor is
/// closed, and another child may have inherited one. Every child is reaped at once, by a thread of
/// its own: the one thread with which Swift Testing waits for its exit tests looks at any child that
/// has ended, and would see one that nobody reaps for ever.
package final class Program: Sendable {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    /// What it said that nobody read before, and its exit status; -1 if a signal ended it.
    package struct End {
        package let output: String
        package let errors: String
        package let status: Int32
    }

    package let processID: Int32
    private let output = Lines()
    private let errors = Lines()
    private let status = Inbox<Int32>()
    private let isReaped = Shared(false)

    /// Starts a program with this process's environment and more.
    package init(_ arguments: [String], environment: [String: String] = [:]) throws {
        var ends: (output: [Int32], errors: [Int32]) = ([-1, -1], [-1, -1])
        guard Self.join(&ends.output), Self.join(&ends.errors) else {
            throw Failure(description: "socketpair: errno \(errno)")
        }
        let result = Self.spawn(arguments, environment, ends.output[1], ends.errors[1])
        close(ends.output[1])
        close(ends.errors[1])
        guard case .success(let process) = result else {
            close(ends.output[0])
            close(ends.errors[0])
            throw Failure(description: "\(arguments.first ?? "") cannot be started")
        }
        processID = process
        Thread.detachNewThread { [output, pipe = ends.output[0]] in output.read(pipe) }
        Thread.detachNewThread { [errors, pipe = ends.errors[0]] in errors.read(pipe) }
        Thread.detachNewThread { [status, isReaped] in
            var information = siginfo_t()
            while waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) < 0, errno == EINTR
            {}
            var code: Int32 = 0
            isReaped.withLock { isReaped in
                isReaped = true
                waitpid(process, &code, 0)
            }
            status.send(code & 0x7F == 0 ? code >> 8 & 0xFF : -1)
        }
    }

    /// Starts a shell's command line.
    package convenience init(shell line: String, environment: [String: String] = [:]) throws {
        try self.init(["/bin/bash", "-c", line], environment: environment)
    }

    deinit { signal(SIGKILL) }

    package func signal(_ number: Int32) {
        // The number is nobody else's until the child is reaped.
        isReaped.withLock { if !$0 { kill(processID, number) } }
    }

    /// The next line of its output.
    package func line() async throws -> String { try await output.next() }

    /// The next line of its complaints.
    package func errorLine() async throws -> String { try await errors.next() }

    /// Waits for its end.
    package func end() async throws -> End {
        End(
            output: await output.rest(), errors: await errors.rest(),
            status: try await status.next())
    }

    /// Runs a program to its end.
    package static func run(
        _ arguments: [String], environment: [String: String] = [:]
    ) async throws -> End {
        try await Program(arguments, environment: environment).end()
    }

    /// Runs a program to its end, which must be a success.
    package static func succeed(_ arguments: [String]) async throws {
        let end = try await run(arguments)
        guard end.status == 0 else {
            throw Failure(
                description: "\(arguments.joined(separator: " ")): \(end.errors)\(end.output)")
        }
    }

    /// Whether the machine has a command.
    package static func has(_ command: String) -> Bool {
        let folders = ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"]
        let isThere = folders.contains { access("\($0)/\(command)", X_OK) == 0 }
        if !isThere { skip("tests with \(command) (run Tests/check setup)") }
        return isThere
    }

    /// Both ends of what serves as a pipe: pipe2(2) is not in the Glibc module, and what pipe(2)
    /// makes may be inherited by another child before it is marked.
    private static func join(_ ends: inout [Int32]) -> Bool {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        return socketpair(AF_UNIX, type, 0, &ends) == 0
    }

    private static func spawn(
        _ arguments: [String], _ more: [String: String], _ output: Int32, _ errors: Int32
    ) -> Result<pid_t, Failure> {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output, 1)
        posix_spawn_file_actions_adddup2(&actions, errors, 2)
        // Towpath's threads block all signals, which a child would inherit.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var words = arguments.map { strdup($0) } + [nil]
        let inherited = ProcessInfo.processInfo.environment.filter { more[$0.key] == nil }
        var variables = inherited.merging(more) { $1 }.map { strdup("\($0)=\($1)") } + [nil]
        defer { for text in words + variables { free(text) } }
        var process: pid_t = 0
        let result = posix_spawnp(
            &process, arguments.first ?? "", &actions, &attributes, &words, &variables)
        return result == 0 ? .success(process) : .failure(Failure(description: "errno \(result)"))
    }
}

/// The lines that come out of a pipe.
private final class Lines: Sendable {
    private let lines = Inbox<String>()

    /// Reads to the end, which blocks the thread, and closes the pipe.
    func read(_ pipe: Int32) {
        defer {
            close(pipe)
            lines.finish()
        }
        var pending: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(pipe, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            pending += buffer.prefix(max(0, count))
            while let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
                lines.send(String(decoding: pending[...end], as: UTF8.self))
                pending.removeSubrange(...end)
            }
            guard count > 0 else { break }
        }
        if !pending.isEmpty { lines.send(String(decoding: pending, as: UTF8.self)) }
    }

    func next() async throws -> String {
        let line = try await lines.next()
        return line.hasSuffix("\n") ? String(line.dropLast()) : line
    }

    func rest() async -> String {
        var text = ""
        while let line = try? await lines.next() { text += line }
        return text
    }
}
