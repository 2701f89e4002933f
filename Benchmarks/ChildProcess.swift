import Foundation

/// A program that runs for us, found in PATH, its standard output read by us.
final class ChildProcess {
    private let process = Process()
    private let output = Pipe()
    private let command: [String]

    /// `--pdeathsig`: when this process dies, however it does, so does the program.
    init(_ command: [String], environment: [String: String] = [:], silent: Bool = false) throws {
        self.command = command
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["setpriv", "--pdeathsig", "KILL"] + command
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        if silent { process.standardError = FileHandle.nullDevice }
        try process.run()
    }

    var identifier: Int32 { process.processIdentifier }
    var isRunning: Bool { process.isRunning }

    /// Runs it to its end and returns what it printed.
    static func output(of command: [String], silent: Bool = false) throws -> String {
        let child = try ChildProcess(command, silent: silent)
        let bytes = try child.output.fileHandleForReading.readToEnd() ?? Data()
        child.process.waitUntilExit()
        guard child.process.terminationStatus == 0 else {
            throw BenchmarkError("failed: \(command.joined(separator: " "))")
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The next line it prints, if it then waits: what follows at once is lost.
    func line(within limit: Duration) throws -> String {
        let handle = output.fileHandleForReading
        var bytes = Data()
        while !bytes.contains(UInt8(ascii: "\n")) {
            var waiting = pollfd(
                fd: handle.fileDescriptor, events: Int16(POLLIN), revents: 0)
            let milliseconds = Int32(clamping: limit.components.seconds * 1_000)
            guard poll(&waiting, 1, milliseconds) == 1 else {
                throw BenchmarkError("says nothing: \(command.joined(separator: " "))")
            }
            let chunk = handle.availableData
            if chunk.isEmpty {
                throw BenchmarkError("ended without a word: \(command.joined(separator: " "))")
            }
            bytes.append(chunk)
        }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    func terminate() {
        process.terminate()
        process.waitUntilExit()
    }
}

/// What went wrong, for the reader of the table.
struct BenchmarkError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
