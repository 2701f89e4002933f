import Foundation
import Glibc

/// A network namespace of one test, gone with it. Its name is unique by process.
///
/// A socket belongs to the namespace of the thread that makes it, and Towpath's are made by its loops.
/// So a test that needs sockets in a namespace runs the test program again inside of it, for itself
/// alone: `isInside` says that it is there.
package final class NetworkNamespace: Sendable {
    private static let variable = "TOWPATH_NAMESPACE_TEST"
    private static let folder = "/run/netns"

    package let name: String

    /// Says aloud that a test is skipped, and why.
    package static func isPossible(_ what: String) async -> Bool {
        guard let obstacle = await obstacle() else { return true }
        skip("\(what): \(obstacle)")
        return false
    }

    private static func obstacle() async -> String? {
        if isSanitized { return "a sanitizer does not see namespaces" }
        if geteuid() != 0 { return "namespaces need root" }
        await removeLeftovers()
        do { withExtendedLifetime(try await NetworkNamespace()) {} } catch { return "\(error)" }
        return nil
    }

    /// Those of processes that were killed.
    private static func removeLeftovers() async {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names where name.hasPrefix("towpath-") {
            let process = name.split(separator: "-").dropFirst().first.flatMap { pid_t($0) }
            if let process, kill(process, 0) != 0, errno == ESRCH {
                _ = try? await Program.run(["ip", "netns", "delete", name])
            }
        }
    }

    /// Whether this process was started for this test, inside its namespace.
    package static func isInside(_ test: String = #function) -> Bool {
        let name = String(test.prefix { $0 != "(" })
        guard ProcessInfo.processInfo.environment[variable] == name else { return false }
        print("inside \(name)")
        return true
    }

    /// The other end of a pair of namespaces.
    package static var far: String { ProcessInfo.processInfo.environment["TOWPATH_FAR"] ?? "" }

    package init() async throws {
        name = "towpath-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        try await Program.succeed(["ip", "netns", "add", name])
        try await ip("link", "set", "lo", "up")
    }

    deinit {
        guard let program = try? Program(["ip", "netns", "delete", name]) else { return }
        Task.detached { _ = try? await program.end() }
    }

    /// ip(8) in the namespace.
    package func ip(_ arguments: String...) async throws {
        try await Program.succeed(["ip", "-n", name] + arguments)
    }

    /// A program in the namespace.
    package func execute(_ arguments: String...) async throws {
        try await Program.succeed(["ip", "netns", "exec", name] + arguments)
    }

    /// Runs one test of this program in the namespace, within a minute; throws what it said if it
    /// failed.
    package func run(_ test: String, far: NetworkNamespace? = nil) async throws {
        let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let end = try await Program.run(
            [
                "ip", "netns", "exec", name, "timeout", "--kill-after=5", "50", program ?? "",
                "--testing-library", "swift-testing", "--filter", test,
            ], environment: [Self.variable: test, "TOWPATH_FAR": far?.name ?? ""])
        let output = end.output + end.errors
        // Swift Testing is content too where the filter fits nothing.
        guard end.status == 0, output.contains("inside \(test)") else {
            throw Program.Failure(description: output)
        }
    }
}
