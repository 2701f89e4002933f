import Glibc
import Towpath
import TowpathReactor

/// A socket of the kernel's plain kind, for peers that a `Connection` would be too well-behaved for.
final class PlainSocket: Sendable {
    let descriptor: Descriptor

    init(_ family: SocketAddress.Family, _ type: Descriptor.SocketType = .stream) throws {
        descriptor = try Descriptor.socket(family, type)
    }

    init(owning number: Int32) { descriptor = Descriptor(owning: number) }

    /// A TCP client in the queue of a listener on 127.0.0.1, once its handshake is over.
    static func client(to port: UInt16) throws -> PlainSocket {
        let socket = try PlainSocket(.ipv4)
        _ = socket.descriptor.connect(to: .loopback(port))
        guard socket.isReady(for: POLLOUT) else { throw SystemError(ETIMEDOUT, "poll") }
        let code = socket.descriptor.takeError()
        guard code == 0 else { throw SystemError(code, "connect") }
        return socket
    }

    /// One that is bound to the address, and listens if it is a stream.
    static func bound(
        to address: SocketAddress, _ type: Descriptor.SocketType = .stream, backlog: Int32 = 16
    ) throws -> PlainSocket {
        let socket = try PlainSocket(address.family, type)
        try socket.descriptor.bind(to: address)
        if type == .stream { try socket.descriptor.listen(backlog: backlog) }
        return socket
    }

    /// Another number for the socket, for somebody to own.
    func duplicate() throws -> Int32 { try descriptor.duplicate().release() }

    var port: UInt16 { get throws { try descriptor.localAddress().port } }

    func send(_ text: String) -> Bool {
        Array(text.utf8).withUnsafeBytes { descriptor.send($0) } == .done(text.utf8.count)
    }

    /// What comes next, "" for the end; nil for an error.
    func receive() -> String? {
        guard isReady(for: POLLIN) else { return nil }
        var buffer = [UInt8](repeating: 0, count: 4_096)
        guard
            case .done(let count) = buffer.withUnsafeMutableBytes({ descriptor.receive(into: $0) })
        else { return nil }
        return String(decoding: buffer.prefix(count), as: UTF8.self)
    }

    /// Waits until the socket is ready: by default, for as long as a test may take.
    func isReady(for events: Int32, milliseconds: Int32 = 30_000) -> Bool {
        descriptor.isReady(for: events, milliseconds: milliseconds)
    }
}

extension SocketAddress {
    static func loopback(_ port: UInt16 = 0) -> SocketAddress {
        SocketAddress(ipv4: 0x7F00_0001, port: port)
    }
}

extension Endpoint {
    /// An abstract name as the kernel has it.
    var abstractAddress: SocketAddress {
        get throws {
            guard case .abstract(let name) = self,
                let address = SocketAddress(unix: Array(name.utf8), abstract: true)
            else { throw SystemError(EINVAL, "abstractAddress") }
            return address
        }
    }
}

/// The loop on whose thread the caller runs.
func currentLoop() -> EventLoop? {
    (try? EventLoopGroup.shared.all())?.first(where: \.isCurrent)
}

var isRoot: Bool { geteuid() == 0 }

/// The number in a file of /proc/sys; 0 if there is none.
func systemSetting(_ name: String) -> Int {
    Int(contents(of: "/proc/sys/\(name)").prefix { !$0.isWhitespace }) ?? 0
}

/// The beginning of a file, up to 16 KiB; empty if it cannot be read.
func contents(of path: String) -> String {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return "" }
    defer { close(file) }
    var buffer = [UInt8](repeating: 0, count: 16_384)
    let length = read(file, &buffer, buffer.count)
    return String(decoding: buffer.prefix(max(0, length)), as: UTF8.self)
}

extension Descriptor {
    /// Blocks the thread until the socket is ready.
    func isReady(for events: Int32, milliseconds: Int32 = 30_000) -> Bool {
        var entry = pollfd(fd: number, events: Int16(events), revents: 0)
        return poll(&entry, 1, milliseconds) > 0
    }
}
