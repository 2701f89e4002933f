import Foundation
import Glibc
import Towpath

/// A system call of a test that failed.
struct DatagramFailure: Error, Equatable, CustomStringConvertible {
    let call: String
    let code: Int32

    init(_ call: String, _ code: Int32 = errno) {
        self.call = call
        self.code = code
    }

    var description: String { "\(call): \(String(cString: strerror(code)))" }
}

/// A peer that knows nothing of Towpath: a socket with the C library's calls.
final class DatagramSocket: Sendable {
    let number: Int32

    /// A socket of the endpoint's family, bound to it.
    init(_ endpoint: Endpoint = .udp4(), stream: Bool = false) throws {
        let type = Int32((stream ? SOCK_STREAM : SOCK_DGRAM).rawValue)
        number = socket(endpoint.domain, type | O_CLOEXEC, 0)
        guard number >= 0 else { throw DatagramFailure("socket") }
        try check(endpoint.withSocketAddress { bind(number, $0, $1) }, "bind")
    }

    init(owning number: Int32) { self.number = number }

    deinit { close(number) }

    private func check(_ result: Int32, _ call: String) throws {
        if result < 0 { throw DatagramFailure(call) }
    }

    var endpoint: Endpoint {
        get throws { try Self.endpoint(of: number, getsockname) }
    }

    static func endpoint(
        of number: Int32,
        _ call: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) throws -> Endpoint {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = storage.asSocketAddress { call(number, $0, &length) }
        guard result >= 0, let endpoint = Endpoint(storage) else {
            throw DatagramFailure("getsockname")
        }
        return endpoint
    }

    func connect(to endpoint: Endpoint) throws {
        try check(endpoint.withSocketAddress { Glibc.connect(number, $0, $1) }, "connect")
    }

    /// Ends an association: a connect(2) to the family AF_UNSPEC.
    func disconnect() throws {
        var nowhere = sockaddr_storage()
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        try check(nowhere.asSocketAddress { Glibc.connect(number, $0, length) }, "connect")
    }

    /// Of a stream socket.
    func listen(backlog: Int32) throws { try check(Glibc.listen(number, backlog), "listen") }

    func send(_ bytes: [UInt8], to endpoint: Endpoint) throws {
        let result = endpoint.withSocketAddress {
            sendto(number, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, $1)
        }
        guard result == bytes.count else { throw DatagramFailure("sendto") }
    }

    /// To whom it is connected.
    func send(_ bytes: [UInt8]) throws {
        let result = Glibc.send(number, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        guard result == bytes.count else { throw DatagramFailure("send") }
    }

    /// The next datagram; the guard is 20 s.
    func receive() async throws -> (bytes: [UInt8], from: Endpoint?) {
        if !hasInput, await !waitForInput() { throw DatagramFailure("poll", ETIMEDOUT) }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let count = storage.asSocketAddress {
            recvfrom(number, &buffer, buffer.count, 0, $0, &length)
        }
        guard count >= 0 else { throw DatagramFailure("recvfrom") }
        return (Array(buffer.prefix(count)), Endpoint(storage))
    }

    /// On a thread of its own: whoever sends may need all those that run Swift's tasks.
    private func waitForInput() async -> Bool {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in
                var poll = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
                continuation.resume(returning: Glibc.poll(&poll, 1, 20_000) > 0)
            }
        }
    }

    /// The bytes of the next datagrams.
    func receive(count: Int) async throws -> [[UInt8]] {
        var datagrams: [[UInt8]] = []
        while datagrams.count < count { datagrams.append(try await receive().bytes) }
        return datagrams
    }

    var hasInput: Bool {
        var poll = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
        return Glibc.poll(&poll, 1, 0) > 0
    }

    func set(_ level: Int32, _ option: Int32, _ value: Int32) throws {
        var value = value
        try check(
            setsockopt(number, level, option, &value, socklen_t(MemoryLayout<Int32>.size)),
            "setsockopt")
    }

    /// Room for many or large datagrams, as far as the host allows.
    func enlarge() throws { try set(SOL_SOCKET, SO_RCVBUF, 4 << 20) }
}

/// An address at which nobody listens until `open`: bound, so that no other test gets it, and
/// connected elsewhere, so that it takes nothing.
final class DatagramClosedPort: Sendable {
    let socket: DatagramSocket
    let endpoint: Endpoint
    /// A socket keeps its port when it is disconnected only if it asked for it: this one finds it.
    private let finder: DatagramSocket

    init() throws {
        finder = try DatagramSocket()
        let port = try finder.endpoint.port ?? 0
        endpoint = .udp("127.0.0.18", port)
        socket = try DatagramSocket(endpoint)
        try socket.connect(to: .udp("127.0.0.19", 9))
    }

    func open() throws { try socket.disconnect() }
}
