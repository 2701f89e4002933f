import Foundation
import Glibc
import TestSupport
import Testing
import Towpath

/// What the kernel knows of this process's sockets, and other things to wait for.
enum DatagramProbe {
    /// This process's datagram sockets that are bound to an endpoint: unlike numbers and ports, these
    /// names are not given to others later.
    static func sockets(at endpoint: Endpoint) -> [String] {
        numbers { $0 == endpoint }.filter(isDatagram).compactMap { name(of: $0) }
    }

    /// Whether one of these sockets is still open.
    static func isOpen(_ sockets: [String]) -> Bool {
        !Set(descriptors().compactMap { name(of: $0) }).isDisjoint(with: sockets)
    }

    /// The numbers of this process's sockets whose own endpoint is one that is wanted.
    static func numbers(where isWanted: (Endpoint) -> Bool) -> [Int32] {
        descriptors().filter {
            (try? DatagramSocket.endpoint(of: $0, getsockname)).map(isWanted) ?? false
        }
    }

    private static func descriptors() -> [Int32] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return names.compactMap { Int32($0) }
    }

    private static func name(of number: Int32) -> String? {
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")
    }

    private static func isDatagram(_ number: Int32) -> Bool {
        var type: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(number, SOL_SOCKET, SO_TYPE, &type, &length)
        return type == Int32(SOCK_DGRAM.rawValue)
    }

    /// An option of the only socket that is bound to an endpoint.
    static func option(_ level: Int32, _ option: Int32, at endpoint: Endpoint?) throws -> Int32 {
        let number = try #require(
            endpoint.flatMap { own in
                numbers { $0 == own }.first(where: isDatagram)
            })
        var value: Int32 = -1
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(number, level, option, &value, &length) == 0 else {
            throw DatagramFailure("getsockopt")
        }
        return value
    }

    /// Waits for what tells nobody when it comes true; the guard is 20 s.
    static func eventually(
        _ what: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation,
        _ condition: () async -> Bool
    ) async {
        let limit = ContinuousClock.now + .seconds(20)
        while await !condition() {
            guard ContinuousClock.now < limit else {
                Issue.record(what ?? "not within 20 s", sourceLocation: sourceLocation)
                return
            }
            await Task.yield()
        }
    }

    /// Numbers in order, the bytes of a large datagram.
    static func pattern(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    }

    /// A connection and, connected to it, a peer at an address of loopback.
    static func connected(
        _ udp: UDP = UDP(), at endpoint: Endpoint = .udp4(), parameters: Parameters = Parameters()
    ) async throws -> (connection: Connection<UDP>, peer: DatagramSocket) {
        let peer = try DatagramSocket(endpoint)
        let connection = Connection(to: try peer.endpoint, parameters: parameters) { udp }
        try await connection.start()
        try peer.connect(to: try #require(connection.localEndpoint))
        return (connection, peer)
    }

    static var loopbackMTU: Int? { number(in: "/sys/class/net/lo/mtu") }

    /// The number that a file of the kernel's holds.
    static func number(in path: String) -> Int? {
        let text = try? String(contentsOfFile: path, encoding: .utf8)
        return text.flatMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
    }
}

/// The error that a call throws.
func datagramError(
    _ body: () async throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
) async throws -> NetworkError {
    do { try await body() } catch let error as NetworkError { return error }
    Issue.record("nothing was thrown", sourceLocation: sourceLocation)
    throw CancellationError()
}

extension Listener where Top == UDP {
    /// A listener on loopback that serves while `body` runs.
    static func serving<Value: Sendable>(
        on endpoint: Endpoint = .udp4(), parameters: Parameters = Parameters(), _ udp: UDP = UDP(),
        events: Inbox<ListenerEvent>? = nil,
        handler: @escaping @Sendable (Connection<UDP>) async throws -> Void,
        while body: (Listener<UDP>) async throws -> Value
    ) async throws -> Value {
        let listener = try await Listener(on: endpoint, parameters: parameters) { udp }
        if let events { listener.onEvent { events.send($0) } }
        return try await TowpathTests.serving(listener, handler) { try await body(listener) }
    }
}

/// The handler that most tests use.
@Sendable func echoDatagrams(_ connection: Connection<UDP>) async throws {
    for try await datagram in connection.messages { try await connection.send(datagram.bytes) }
}
