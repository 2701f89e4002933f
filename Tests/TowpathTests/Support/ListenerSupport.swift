import Testing
import Towpath
import TowpathReactor

/// A number that several threads count.
final class Tally: Sendable {
    private let value = Locked(0)

    var count: Int { value.withLock { $0 } }

    @discardableResult
    func add(_ number: Int = 1) -> Int {
        value.withLock { value in
            value += number
            return value
        }
    }
}

/// Runs the listener while `body` does, and then closes it.
func serving<Top: NetworkProtocol, Value: Sendable>(
    _ listener: Listener<Top>, on executor: Listener<Top>.HandlerExecutor = .eventLoop,
    _ handler: @escaping @Sendable (Connection<Top>) async throws -> Void,
    while body: () async throws -> Value
) async throws -> Value {
    let running = Task { try await listener.run(on: executor, handler) }
    let result: Result<Value, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    listener.close()
    do { try await running.end() } catch let error as NetworkError {
        // A short body may have ended before the listener ran.
        guard error.code == .closed, error.stage == .listen else { throw error }
    }
    return try result.get()
}

extension Task where Failure == any Error {
    /// Waits for the task, and cancels it if the test is given up.
    @discardableResult
    func end() async throws -> Success {
        try await withTaskCancellationHandler {
            try await value
        } onCancel: {
            cancel()
        }
    }
}

/// The handler that most tests use.
@Sendable func echo<Top: StreamProtocol>(_ connection: Connection<Top>) async throws {
    for try await chunk in connection.chunks { try await connection.send(chunk) }
}

/// Sends a text, which must come back.
func expectEcho<Top: StreamProtocol>(
    of text: String, from connection: Connection<Top>,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    try await connection.send(text.utf8)
    let answer = try await connection.receive(exactly: text.utf8.count)
    #expect(answer == Array(text.utf8), sourceLocation: sourceLocation)
}

extension Connection {
    /// What the kernel says of an option of the connection's socket.
    func value(of option: SocketOption) throws -> Int32 {
        try withSocket { socket throws(SystemError) in try socket.get(option) }
    }
}

extension Endpoint {
    /// 127.0.0.1 or another address of its network.
    static func loopback(_ port: UInt16 = 0, last: UInt8 = 1) -> Endpoint {
        .hostPort(host: .ipv4(IPv4Address(127, 0, 0, last)), port: port)
    }

    static func loopback6(_ port: UInt16 = 0) -> Endpoint {
        .hostPort(host: .ipv6(.loopback), port: port)
    }

    /// An abstract name that no other test has.
    static func ownName(_ purpose: String) -> Endpoint {
        .abstract("towpath-\(Environment.processID)-\(purpose)-\(names.add())")
    }
}

private let names = Tally()

extension Listener where Top == TCP {
    /// A client of this listener, by 127.0.0.1 where it listens on every address.
    func client(parameters: Parameters = Parameters(), _ tcp: TCP = TCP()) -> Connection<TCP> {
        Connection(to: reachableEndpoint, parameters: parameters) { tcp }
    }

    var reachableEndpoint: Endpoint {
        localEndpoint.host == .ipv6(.any) ? .loopback(port) : localEndpoint
    }
}
