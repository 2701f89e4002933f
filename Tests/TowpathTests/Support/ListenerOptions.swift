import TestSupport
import Testing
import Towpath
import TowpathReactor

/// What a test sees of both ends of a TCP connection over loopback.
struct BothEnds<Value: Sendable>: Sendable {
    let client: Value
    let accepted: Value
}

extension BothEnds: Equatable where Value: Equatable {
    /// The same on both sides.
    static func both(_ value: Value) -> BothEnds { BothEnds(client: value, accepted: value) }
}

/// Opens a connection with these options on both sides, and looks at each.
func bothEnds<Value: Sendable>(
    on endpoint: Endpoint = .loopback(), from client: Endpoint? = nil,
    _ parameters: Parameters = Parameters(), _ tcp: TCP = TCP(),
    look: @escaping @Sendable (Connection<TCP>) throws -> Value
) async throws -> BothEnds<Value> {
    let listener = try await Listener(on: endpoint, parameters: parameters) { tcp }
    let looks = Inbox<Value>()
    return try await serving(listener) { connection in
        looks.send(try look(connection))
        try await echo(connection)
    } while: {
        let host = client?.host ?? listener.reachableEndpoint.host ?? .ipv4(.loopback)
        let connection = Connection(
            to: .hostPort(host: host, port: listener.port), parameters: parameters
        ) { tcp }
        try await expectEcho(of: "with options", from: connection)
        return BothEnds(client: try look(connection), accepted: try await looks.next())
    }
}

/// One option of both ends.
func bothEnds(
    of option: SocketOption, on endpoint: Endpoint = .loopback(), from client: Endpoint? = nil,
    _ parameters: Parameters = Parameters(), _ tcp: TCP = TCP()
) async throws -> BothEnds<Int32> {
    try await bothEnds(on: endpoint, from: client, parameters, tcp) { try $0.value(of: option) }
}
