import Foundation
import TestSupport
import Testing

/// The tools of this package, as `Tests/check test` built them.
enum Tool {
    /// Where `swift build -c release` put them; `Tests/check test` says where.
    private static let folder = ProcessInfo.processInfo.environment["TOWPATH_TOOLS"]

    /// Interop is skipped under the sanitizers, which would only watch the test's own side.
    static let isAvailable: Bool = {
        if isSanitized { return false }
        guard let folder, access("\(folder)/echo-listener", X_OK) == 0 else {
            skip("tests of echo-listener (run Tests/check test, which builds it)")
            return false
        }
        return true
    }()

    /// Starts a shell's command line. `$ECHO` in it is the echo listener, `$WATCH` pathwatch.
    static func start(_ line: String) throws -> Program {
        let folder = folder ?? ""
        return try Program(
            shell: line,
            environment: ["ECHO": "\(folder)/echo-listener", "WATCH": "\(folder)/pathwatch"])
    }

    /// Runs a command line to its end.
    static func run(_ line: String) async throws -> Program.End { try await start(line).end() }

    /// A wrong command line ends with status 2 and one clear line.
    static func expectUsageError(
        _ line: String, _ complaint: String, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let end = try await run(line)
        #expect(end.status == 2, sourceLocation: sourceLocation)
        #expect(end.output.isEmpty, sourceLocation: sourceLocation)
        #expect(end.errors.contains(complaint), "\(end)", sourceLocation: sourceLocation)
        #expect(
            end.errors.split(separator: "\n").count == 1, "\(end)", sourceLocation: sourceLocation)
    }
}
