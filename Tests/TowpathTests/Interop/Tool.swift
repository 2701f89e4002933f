import Foundation
import Testing

/// A command that runs beside the tests: its lines as they come, and how it ended.
///
/// Ended with the test, whatever happens.
final class Tool: Sendable {
    struct Ended: Error, CustomStringConvertible {
        let description: String
    }

    /// Where `swift build -c release` put the tools; `Tests/check test` says where.
    static let folder = ProcessInfo.processInfo.environment["TOWPATH_TOOLS"]

    /// Interop is skipped under the sanitizers, which would only watch the test's own side.
    static let isAvailable: Bool = {
        let environment = ProcessInfo.processInfo.environment
        if environment["TOWPATH_SANITIZED"] != nil { return false }
        guard let folder, FileManager.default.isExecutableFile(atPath: "\(folder)/echo-listener")
        else {
            print("skipped: tests of echo-listener (run Tests/check test, which builds it)")
            return false
        }
        return true
    }()

    static func has(_ command: String) -> Bool {
        let isThere = ["/usr/bin", "/bin", "/usr/local/bin"].contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/\(command)")
        }
        if !isThere { print("skipped: tests with \(command) (run Tests/check setup)") }
        return isThere
    }

    private let process = Process()
    private let output = Pipe()
    private let errors = Pipe()

    /// Starts a shell command line. `$ECHO` in it is the echo listener.
    init(_ line: String) throws {
        process.executableURL = URL(fileURLWithPath: "/bin/bash")
        process.arguments = ["-c", line]
        var environment = ProcessInfo.processInfo.environment
        environment["ECHO"] = Tool.folder.map { "\($0)/echo-listener" }
        process.environment = environment
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errors
        try process.run()
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    var processID: Int32 { process.processIdentifier }

    /// The next line of its output.
    func line() throws -> String { try Self.line(output) }

    /// The next line of its complaints.
    func errorLine() throws -> String { try Self.line(errors) }

    private static func line(_ pipe: Pipe) throws -> String {
        var bytes: [UInt8] = []
        while let byte = try pipe.fileHandleForReading.read(upToCount: 1)?.first {
            if byte == UInt8(ascii: "\n") { return String(decoding: bytes, as: UTF8.self) }
            bytes.append(byte)
        }
        throw Ended(description: "it ended; so far: \(String(decoding: bytes, as: UTF8.self))")
    }

    func signal(_ number: Int32) { kill(process.processIdentifier, number) }

    /// Waits for its end; everything it still said, and its exit status.
    func end() throws -> (output: String, errors: String, status: Int32) {
        let output = try self.output.fileHandleForReading.readToEnd() ?? Data()
        let errors = try self.errors.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (
            String(decoding: output, as: UTF8.self), String(decoding: errors, as: UTF8.self),
            process.terminationStatus
        )
    }

    /// Runs a command line to its end.
    static func run(_ line: String) throws -> (output: String, errors: String, status: Int32) {
        try Tool(line).end()
    }
}
