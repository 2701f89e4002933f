import Glibc
import TestSupport
import Towpath
import TowpathReactor

/// Holds a thread of a test's peer until the test lets it go. What follows does not wait for a task:
/// for what has to happen within the 2 s of a close, however busy the host is.
final class StreamGate: Sendable {
    private let near: StreamPeer
    private let far: StreamPeer
    private let arrivals = Inbox<Void>()

    init() throws {
        let (first, second) = try Streams.socketPair()
        (near, far) = (StreamPeer(owning: first), StreamPeer(owning: second))
    }

    func open() { near.close() }

    /// Blocks the thread.
    func wait() throws {
        arrivals.send(())
        _ = try Streams.read(far.number, 1)
    }

    /// Returns once a thread waits.
    func arrival() async throws { _ = try await arrivals.next() }
}

extension StreamPeer {
    /// Reads to the end once the gate opens, on a thread that waits there when this returns.
    func reading(behind gate: StreamGate, closing: Bool = true) async throws -> Task<
        [UInt8], any Error
    > {
        let task = Task {
            try await run { [self] number in
                try gate.wait()
                var bytes: [UInt8] = []
                while case let new = try Streams.read(number, 65_536), !new.isEmpty {
                    bytes += new
                }
                if closing { close() }
                return bytes
            }
        }
        try await gate.arrival()
        return task
    }

    /// Sends once the gate opens, then reads to the end.
    func sending(_ bytes: [UInt8], behind gate: StreamGate) async throws -> Task<[UInt8], any Error>
    {
        let task = Task {
            try await run { [self] number in
                try gate.wait()
                try Streams.write(number, bytes)
                let rest = try Streams.read(number, 65_536)
                close()
                return rest
            }
        }
        try await gate.arrival()
        return task
    }
}

extension Streams {
    /// Closes on the connection's loop, and opens the gate right before.
    static func closing(_ connection: Connection<TCP>, opening gate: StreamGate) async {
        await Task(executorPreference: connection.executor) {
            gate.open()
            await connection.close()
        }.value
    }
}
