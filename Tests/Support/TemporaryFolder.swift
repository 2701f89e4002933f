import Foundation

/// A folder of its own for a test, which goes with it.
package final class TemporaryFolder: Sendable {
    package let path: String

    package init() throws {
        let url = FileManager.default.temporaryDirectory
            .appending(path: "towpath-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        path = url.path
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a file in it.
    package func path(_ name: String) -> String { "\(path)/\(name)" }

    /// Writes a file, and returns its path.
    @discardableResult
    package func write(_ bytes: some Sequence<UInt8>, to name: String) throws -> String {
        try Data(bytes).write(to: URL(filePath: path(name)))
        return path(name)
    }

    /// The bytes of a file.
    package func bytes(of name: String) throws -> [UInt8] {
        try Array(Data(contentsOf: URL(filePath: path(name))))
    }

    /// Runs a shell's command line in it, which must be a success, and returns what it says.
    @discardableResult
    package func run(_ line: String) async throws -> String {
        let end = try await Program(shell: "cd '\(path)' && \(line)").end()
        guard end.status == 0 else {
            throw Program.Failure(description: "\(line): \(end.errors)\(end.output)")
        }
        return end.output
    }
}
