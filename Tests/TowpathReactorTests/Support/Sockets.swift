import CTowpathLinux
import TowpathReactor

extension SocketAddress {
    static func loopback(port: UInt16 = 0) -> SocketAddress {
        SocketAddress(ipv4: 0x7F00_0001, port: port)
    }

    static func loopback6(port: UInt16 = 0) -> SocketAddress {
        SocketAddress(ipv6High: 0, low: 1, scope: 0, port: port)
    }

    /// An IPv4 address as a dual-stack socket speaks of it.
    static func mapped(_ address: UInt32, port: UInt16) -> SocketAddress {
        SocketAddress(ipv6High: 0, low: 0xFFFF_0000_0000 | UInt64(address), scope: 0, port: port)
    }
}

extension Descriptor {
    /// Both ends of a Unix socket pair.
    static func joined(_ type: SocketType = .stream) throws -> Ends {
        let (near, far) = try pair(type)
        return Ends(near: Descriptor(owning: near), far: Descriptor(owning: far))
    }

    /// Both ends of a TCP connection over loopback.
    static func connected() throws -> Ends {
        let listener = try listening()
        let near = try socket(.ipv4, .stream)
        _ = near.connect(to: try listener.localAddress())
        try listener.wait(for: POLLIN)
        try near.wait(for: POLLOUT)
        guard case .connection(let far, _) = listener.accept() else {
            throw SystemError(EAGAIN, "accept")
        }
        return Ends(near: near, far: far)
    }

    static func listening() throws -> Descriptor {
        let listener = try socket(.ipv4, .stream)
        try listener.bind(to: .loopback())
        try listener.listen(backlog: 16)
        return listener
    }

    /// A datagram socket on a port of the kernel's choice.
    static func bound(to address: SocketAddress = .loopback()) throws -> Descriptor {
        let socket = try socket(address.family, .datagram)
        try socket.bind(to: address)
        return socket
    }

    /// Waits until the descriptor is ready, which on loopback is at once: the guard is 10 s.
    func wait(for events: Int32) throws {
        guard shim_poll_one(number, Int16(events), 10_000) > 0 else {
            throw SystemError(ETIMEDOUT, "poll")
        }
    }

    /// Waits for the peer's end.
    func waitForEnd() throws {
        try wait(for: Int32(SHIM_EPOLLRDHUP))
    }

    func send(_ bytes: [UInt8]) -> Transfer {
        bytes.withUnsafeBytes { send($0) }
    }

    func sendDatagram(
        _ bytes: [UInt8], _ route: DatagramRoute? = nil, segmentSize: Int? = nil
    ) -> Transfer {
        bytes.withUnsafeBytes { sendDatagram($0, route, segmentSize: segmentSize) }
    }

    /// What one recv(2) gives now.
    func receive(atMost count: Int = 65_536) -> Received {
        var buffer = [UInt8](repeating: 0, count: count)
        switch buffer.withUnsafeMutableBytes({ receive(into: $0) }) {
        case .done(let count): return .bytes(Array(buffer.prefix(count)))
        case .wouldBlock: return .nothing
        case .failed(let code): return .failed(code)
        }
    }

    /// Everything that lies in the socket.
    func receiveAll() -> [UInt8] {
        var all: [UInt8] = []
        while case .bytes(let bytes) = receive(), !bytes.isEmpty { all += bytes }
        return all
    }
}

/// The two ends of a connection.
struct Ends: ~Copyable {
    let near: Descriptor
    let far: Descriptor

    /// Lets one end go.
    consuming func keepNear() -> Descriptor { near }
}

enum Received: Equatable {
    case bytes([UInt8])
    case nothing
    case failed(Int32)

    static let end = Received.bytes([])
}

/// A descriptor that closures can hold.
final class Holder: Sendable {
    let descriptor: Descriptor

    init(_ number: Int32) {
        descriptor = Descriptor(owning: number)
    }

    /// Both ends of a pair.
    static func pair(_ type: Descriptor.SocketType = .stream) throws -> (near: Holder, far: Holder)
    {
        let (near, far) = try Descriptor.pair(type)
        return (near: Holder(near), far: Holder(far))
    }
}
