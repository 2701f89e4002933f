import Glibc
import Towpath
import TowpathReactor

/// A peer that is not made of Towpath: a blocking socket, used on threads of the test's own.
///
/// Every call gives up after 30 s, so that a fault ends the test and not the suite.
final class StreamPeer: Sendable {
    private static let threads = BlockingPool(limit: 64)
    private let descriptor: Locked<Int32>

    /// Takes the descriptor over.
    init(owning number: Int32) {
        descriptor = Locked(number)
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
    }

    deinit { close() }

    /// A raw client of a port on the loopback.
    static func connect(to port: UInt16) async throws -> StreamPeer {
        let socket = StreamPeer(owning: try Streams.socket(AF_INET))
        try await socket.run { number in
            try Streams.withLoopback(port) {
                try Streams.check(Glibc.connect(number, $0, $1), "connect")
            }
        }
        return socket
    }

    /// A Unix stream of which one end is Towpath's and the other one raw.
    static func joined() throws -> (connection: Connection<TCP>, peer: StreamPeer) {
        let (near, far) = try Streams.socketPair()
        return (try Connection(adopting: near) { TCP() }, StreamPeer(owning: far))
    }

    /// Runs blocking calls on a thread of their own.
    @discardableResult
    func run<Value: Sendable>(
        _ body: @escaping @Sendable (Int32) throws -> Value
    ) async throws -> Value {
        let result = try await Self.threads.run { [self] in
            Result { try body(descriptor.withLock { $0 }) }
        }
        return try result.get()
    }

    var number: Int32 { descriptor.withLock { $0 } }

    // MARK: Bytes

    func send(_ bytes: [UInt8], flags: Int32 = 0) async throws {
        try await run { try Streams.write($0, bytes, flags: flags) }
    }

    /// Sends one urgent byte (MSG_OOB).
    func sendUrgent(_ byte: UInt8) async throws {
        try await send([byte], flags: Int32(MSG_OOB))
    }

    /// What one recv(2) gives; nothing at the end.
    func receive(atMost count: Int = 65_536) async throws -> [UInt8] {
        try await run { try Streams.read($0, count) }
    }

    /// Writes until the kernel takes no more; returns how much that was.
    func fill() async throws -> Int {
        try await run { number in
            let piece = [UInt8](repeating: 0, count: 4_096)
            var count = 0
            for size in [4_096, 1] {
                while true {
                    let sent = Glibc.send(number, piece, size, Int32(MSG_DONTWAIT))
                    guard sent > 0 else { break }
                    count += sent
                }
            }
            return count
        }
    }

    func receive(exactly count: Int) async throws -> [UInt8] {
        try await run { number in
            var bytes: [UInt8] = []
            while bytes.count < count {
                let new = try Streams.read(number, count - bytes.count)
                if new.isEmpty { break }
                bytes += new
            }
            return bytes
        }
    }

    /// Everything up to the end of the stream. Throws if it is no clean end.
    func receiveAll() async throws -> [UInt8] {
        let (bytes, code) = try await receiveToTheEnd()
        guard code == 0 else { throw SystemError(code, "recv") }
        return bytes
    }

    /// Everything up to the end of the stream, and the error that it ended with, 0 for none.
    func receiveToTheEnd() async throws -> (bytes: [UInt8], code: Int32) {
        try await run { number in
            var bytes: [UInt8] = []
            while true {
                do throws(SystemError) {
                    let new = try Streams.read(number, 65_536)
                    if new.isEmpty { return (bytes, 0) }
                    bytes += new
                } catch {
                    return (bytes, error.code)
                }
            }
        }
    }

    /// How many bytes lie in the socket, unread.
    var unreadCount: Int {
        var count: Int32 = 0
        _ = ioctl(number, UInt(FIONREAD), &count)
        return Int(count)
    }

    /// Passes a descriptor along with one byte, over a Unix socket (SCM_RIGHTS).
    func pass(_ passed: Int32, with byte: UInt8) async throws {
        try await run { number in
            // struct cmsghdr { size_t len; int level; int type; }, then the number, padded to 24.
            var control: [UInt32] = [20, 0, UInt32(SOL_SOCKET), 1, UInt32(passed), 0]
            var payload = byte
            try withUnsafeMutablePointer(to: &payload) { payload in
                try control.withUnsafeMutableBytes { control in
                    var vector = iovec(iov_base: payload, iov_len: 1)
                    try withUnsafeMutablePointer(to: &vector) { vector in
                        var message = msghdr()
                        message.msg_iov = vector
                        message.msg_iovlen = 1
                        message.msg_control = control.baseAddress
                        message.msg_controllen = control.count
                        _ = try Streams.check(Glibc.sendmsg(number, &message, 0), "sendmsg")
                    }
                }
            }
        }
    }

    // MARK: Ends

    func finish() { shutdown(number, Int32(SHUT_WR)) }

    func close() {
        let number = descriptor.withLock { number in
            defer { number = -1 }
            return number
        }
        if number >= 0 { Glibc.close(number) }
    }

    /// Closes with a reset (SO_LINGER 0).
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            number, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        close()
    }

    /// Gives the descriptor away.
    func release() -> Int32 {
        descriptor.withLock { number in
            defer { number = -1 }
            return number
        }
    }
}
