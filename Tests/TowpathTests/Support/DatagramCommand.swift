import Foundation
import Glibc
import Testing

/// A program to run beside a test.
///
/// Not Foundation's `Process`: it hears of an exit when the last copy of a descriptor is closed, and
/// another child that is started at the same time may have inherited one.
struct DatagramCommand: Sendable {
    struct Failure: Error, CustomStringConvertible {
        let command: [String]
        let output: String

        var description: String { "\(command.joined(separator: " ")): \(output)" }
    }

    private let arguments: [String]

    init(_ arguments: [String]) { self.arguments = arguments }

    /// Runs it to its end; a thread of its own waits.
    func run() async -> (status: Int32, output: String) {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: runHere()) }
        }
    }

    func succeed() async throws {
        let (status, output) = await run()
        guard status == 0 else { throw Failure(command: arguments, output: output) }
    }

    /// Starts it; nobody waits for its end.
    @discardableResult
    func start(output: String = "/dev/null") -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        // Towpath's threads block all signals, which a child would inherit.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var pointers = arguments.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var process: pid_t = 0
        let result = posix_spawnp(&process, arguments[0], &actions, &attributes, &pointers, environ)
        return result == 0 ? process : -1
    }

    private func runHere() -> (status: Int32, output: String) {
        let file = Self.temporaryFile()
        defer { unlink(file) }
        let process = start(output: file)
        guard process > 0 else { return (-1, "\(arguments[0]) cannot be started") }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        let output = FileManager.default.contents(atPath: file) ?? Data()
        // The exit code; a signal counts as failure.
        return (
            status & 0x7F == 0 ? status >> 8 & 0xFF : -1, String(decoding: output, as: UTF8.self)
        )
    }

    static func temporaryFile() -> String {
        NSTemporaryDirectory() + "/towpath-\(getpid())-\(UInt32.random(in: 0 ... .max))"
    }
}

/// A program that runs as long as a test needs it.
final class DatagramHelper: Sendable {
    private let process: pid_t
    private let output = DatagramCommand.temporaryFile()

    init(_ arguments: [String]) { process = DatagramCommand(arguments).start(output: output) }

    deinit {
        unlink(output)
        guard process > 0 else { return }
        kill(process, SIGTERM)
        Thread.detachNewThread { [process] in
            var status: Int32 = 0
            waitpid(process, &status, 0)
        }
    }

    /// Waits until it has said that it is ready.
    func waitUntilReady() async {
        await DatagramProbe.eventually("no \"ready\" from the helper") {
            let data = FileManager.default.contents(atPath: output) ?? Data()
            return String(decoding: data, as: UTF8.self).contains("ready")
        }
    }
}
