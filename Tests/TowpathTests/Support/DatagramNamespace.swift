import Foundation
import Glibc
import Testing
import Towpath

/// A network namespace of one test, gone with it. Its name is unique by process.
///
/// A socket belongs to the namespace of the thread that makes it, and Towpath's are made by its loops.
/// So a test that needs sockets in a namespace runs the test program again inside of it, for itself
/// alone: `isInside` says that it is there.
final class DatagramNamespace: Sendable {
    private static let variable = "TOWPATH_NAMESPACE_TEST"
    private static let folder = "/run/netns"

    let name: String

    /// Says aloud that a test is skipped, and why.
    static func isPossible(_ what: String) async -> Bool {
        guard let obstacle = await obstacle() else { return true }
        DatagramProbe.skip("\(what): \(obstacle)")
        return false
    }

    private static func obstacle() async -> String? {
        let environment = ProcessInfo.processInfo.environment
        if environment["TOWPATH_SANITIZED"] != nil { return "a sanitizer does not see namespaces" }
        if geteuid() != 0 { return "namespaces need root" }
        await removeLeftovers()
        do { withExtendedLifetime(try await DatagramNamespace()) {} } catch { return "\(error)" }
        return nil
    }

    /// Those of processes that were killed.
    private static func removeLeftovers() async {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names where name.hasPrefix("towpath-") {
            let process = name.split(separator: "-").dropFirst().first.flatMap { pid_t($0) }
            if let process, kill(process, 0) != 0, errno == ESRCH {
                _ = await DatagramCommand(["ip", "netns", "delete", name]).run()
            }
        }
    }

    /// Whether this process was started for this test, inside its namespace.
    static func isInside(_ test: String = #function) -> Bool {
        let name = String(test.prefix { $0 != "(" })
        guard ProcessInfo.processInfo.environment[variable] == name else { return false }
        print("inside \(name)")
        return true
    }

    /// The other end of a pair of namespaces.
    static var far: String { ProcessInfo.processInfo.environment["TOWPATH_FAR"] ?? "" }

    init() async throws {
        name = "towpath-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        try await DatagramCommand(["ip", "netns", "add", name]).succeed()
        try await ip("link", "set", "lo", "up")
    }

    deinit { DatagramCommand(["ip", "netns", "delete", name]).start() }

    /// ip(8) in the namespace.
    func ip(_ arguments: String...) async throws {
        try await DatagramCommand(["ip", "-n", name] + arguments).succeed()
    }

    /// A program in the namespace.
    func execute(_ arguments: String...) async throws {
        try await DatagramCommand(["ip", "netns", "exec", name] + arguments).succeed()
    }

    /// Runs one test of this program in the namespace, within a minute, and reports its outcome.
    func run(
        _ test: String, far: DatagramNamespace? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let (status, output) = await DatagramCommand([
            "env", "\(Self.variable)=\(test)", "TOWPATH_FAR=\(far?.name ?? "")",
            "ip", "netns", "exec", name, "timeout", "--kill-after=5", "50", program ?? "",
            "--testing-library", "swift-testing", "--filter", test,
        ]).run()
        #expect(status == 0, "\(output)", sourceLocation: sourceLocation)
        // Swift Testing is content too where the filter fits nothing.
        #expect(output.contains("inside \(test)"), "\(output)", sourceLocation: sourceLocation)
    }
}
