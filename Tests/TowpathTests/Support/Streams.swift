import Glibc
import TestSupport
import Testing
import Towpath
import TowpathReactor

/// What the tests of streams share.
enum Streams {
    /// More than the sockets of `connected` and of a Unix pair take while nobody reads.
    static let large = 1_000_000

    // A length that no chunk's size divides: a lost, doubled or moved piece does not compare equal.
    private static let block: [UInt8] = {
        var random = SplitMix64(seed: 0)
        return (0..<70_001).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }()

    /// A part of one endless stream of bytes.
    static func pattern(_ count: Int, from start: Int = 0) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count {
            let offset = (start + bytes.count) % block.count
            bytes += block[offset...].prefix(count - bytes.count)
        }
        return bytes
    }

    /// Compares long streams: `#expect` would look for the shortest difference, for minutes.
    static func expect(
        _ received: [UInt8], toBe bytes: [UInt8], sourceLocation: SourceLocation = #_sourceLocation
    ) {
        if received == bytes { return }
        let place = zip(received, bytes).enumerated().first { $1.0 != $1.1 }?.offset
        Issue.record(
            "\(received.count) bytes instead of \(bytes.count), different from \(place ?? -1) on",
            sourceLocation: sourceLocation)
    }

    // MARK: Waiting

    /// Starts a call in a task on the connection's loop, and returns once it is parked or over.
    static func parked<Value: Sendable>(
        on connection: Connection<TCP>, turns: Int = 20,
        _ call: @escaping @Sendable () async throws -> Value
    ) async -> Task<Value, any Error> {
        let task = Task(executorPreference: connection.executor) { try await call() }
        await settle(connection, turns: turns)
        return task
    }

    /// Lets the connection's loop make so many turns that all that was ready is done.
    static func settle(_ connection: Connection<TCP>, turns: Int = 20) async {
        for _ in 0..<turns { await Task(executorPreference: connection.executor) {}.value }
    }

    /// Waits until the condition holds; the suite's time limit is the guard.
    static func until(_ condition: () throws -> Bool) async throws {
        while try !condition() {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    /// Everything up to the end of the stream.
    static func collect(_ connection: Connection<TCP>) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        for try await chunk in connection.chunks { bytes += chunk }
        return bytes
    }

    /// The error that a call throws.
    static func failure(
        _ call: () async throws -> some Any
    ) async -> NetworkError? {
        do {
            _ = try await call()
            return nil
        } catch {
            return error as? NetworkError
        }
    }

    /// An error to compare with: errors are equal by their codes.
    static func error(_ code: NetworkError.Code) -> NetworkError { NetworkError(code, .setup, "") }

    // MARK: Sockets

    static func socket(_ domain: Int32) throws(SystemError) -> Int32 {
        try check(Glibc.socket(domain, Int32(SOCK_STREAM.rawValue) | 0o2000000, 0), "socket")
    }

    static func socketPair() throws(SystemError) -> (Int32, Int32) {
        var numbers: [Int32] = [-1, -1]
        try check(
            socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | 0o2000000, 0, &numbers), "socketpair")
        return (numbers[0], numbers[1])
    }

    @discardableResult
    static func withLoopback<Value>(
        _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Value
    ) throws -> Value {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        let size = MemoryLayout<sockaddr_in>.size
        return try withUnsafePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try body($0, socklen_t(size))
            }
        }
    }

    static func localPort(_ number: Int32) throws -> UInt16 {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = try check(getsockname(number, $0, &size), "getsockname")
            }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    static func read(_ number: Int32, _ count: Int) throws(SystemError) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: count)
        let result = buffer.withUnsafeMutableBytes { recv(number, $0.baseAddress, $0.count, 0) }
        return Array(buffer.prefix(try check(result, "recv")))
    }

    static func write(
        _ number: Int32, _ bytes: [UInt8], flags: Int32 = 0
    ) throws(SystemError) {
        var sent = 0
        while sent < bytes.count {
            let result = bytes.withUnsafeBytes { buffer in
                send(
                    number, buffer.baseAddress.map { $0 + sent }, buffer.count - sent,
                    flags | Int32(MSG_NOSIGNAL))
            }
            sent += try check(result, "send")
        }
    }

    @discardableResult
    static func check<Number: SignedInteger>(
        _ result: Number, _ call: String
    ) throws(SystemError) -> Number {
        guard result >= 0 else { throw SystemError(errno, call) }
        return result
    }
}
