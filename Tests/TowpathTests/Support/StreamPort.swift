import Glibc
import TestSupport
import Testing
import Towpath
import TowpathReactor

/// A raw listening socket on a port of the kernel's choice.
final class StreamPort: Sendable {
    private let listener: StreamPeer
    let port: UInt16

    /// - Parameter receiveBuffer: SO_RCVBUF of what is accepted: small ones have tiny windows.
    init(backlog: Int32 = 64, receiveBuffer: Int32? = nil) throws {
        let number = try Streams.socket(AF_INET)
        listener = StreamPeer(owning: number)
        if var size = receiveBuffer {
            setsockopt(number, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        try Streams.withLoopback(0) { try Streams.check(bind(number, $0, $1), "bind") }
        try Streams.check(listen(number, backlog), "listen")
        port = try Streams.localPort(number)
    }

    var endpoint: Endpoint { .hostPort(host: .ipv4(.loopback), port: port) }

    func accept() async throws -> StreamPeer {
        try await listener.run { number in
            StreamPeer(owning: try Streams.check(acceptMarked(number), "accept"))
        }
    }

    /// Stops listening; connections that nobody accepted are reset.
    func close() { listener.close() }
}

extension Streams {
    /// A connection over TCP whose other end is a raw peer. The buffers have a fixed size, so that a
    /// send of `large` waits.
    static func connected(
        _ parameters: Parameters = Parameters().sendBufferSize(65_536),
        receiveBuffer: Int32? = 131_072
    ) async throws -> (connection: Connection<TCP>, peer: StreamPeer) {
        let port = try StreamPort(receiveBuffer: receiveBuffer)
        let connection = Connection(to: port.endpoint, parameters: parameters) { TCP() }
        try await connection.start()
        return (connection, try await port.accept())
    }

    /// For openings that shall not end by themselves, however busy the host is.
    static let patientTCP = TCP().connectionTimeout(.seconds(3_600))

    /// A place where a connection attempt neither succeeds nor fails: the queue is full.
    static func unanswering() async throws -> (port: StreamPort, filler: StreamPeer) {
        let port = try StreamPort(backlog: 0)
        return (port, try await StreamPeer.connect(to: port.port))
    }
}

/// What joins the two ends.
enum StreamLink: CaseIterable, CustomTestStringConvertible {
    case tcp, unix

    var testDescription: String { self == .tcp ? "TCP" : "Unix" }

    /// Two connections joined with each other.
    func pair() async throws -> (Connection<TCP>, Connection<TCP>) {
        guard self == .tcp else { return try Connection<TCP>.pair() }
        let (near, far) = try await Streams.connected()
        return (near, try Connection(adopting: far.release()) { TCP() })
    }

    /// A connection and its raw peer.
    func peer() async throws -> (connection: Connection<TCP>, peer: StreamPeer) {
        self == .tcp ? try await Streams.connected() : try StreamPeer.joined()
    }
}
