import CTowpathLinux
import TowpathReactor

struct ReceivedDatagram {
    let bytes: [UInt8]
    let header: DatagramBatch.Header
}

extension Descriptor {
    /// Waits for a datagram and takes what one recvmmsg(2) gives.
    func receiveDatagrams(
        limit: Int = DatagramBatch.capacity, maximumSize: Int = 65_536
    ) throws -> [ReceivedDatagram] {
        try wait(for: POLLIN)
        let batch = DatagramBatch.current
        switch batch.receive(from: self, limit: limit, maximumSize: maximumSize) {
        case .done(let count):
            return (0..<count).map { index in
                ReceivedDatagram(bytes: Array(batch.content(index)), header: batch.header(index))
            }
        case .wouldBlock: return []
        case .failed(let code): throw SystemError(code, "recvmmsg")
        }
    }

    /// Waits for one datagram.
    func receiveDatagram(maximumSize: Int = 65_536) throws -> ReceivedDatagram {
        guard let datagram = try receiveDatagrams(limit: 1, maximumSize: maximumSize).first else {
            throw SystemError(EAGAIN, "recvmmsg")
        }
        return datagram
    }

    /// A connected datagram socket to `receiver`.
    static func sender(to receiver: borrowing Descriptor) throws -> Descriptor {
        let address = try receiver.localAddress()
        let sender = try socket(address.family, .datagram)
        _ = sender.connect(to: address)
        return sender
    }
}

/// A loopback port at which nobody listens until `open`: bound, so that no other test gets it, and
/// connected elsewhere, so that it takes nothing.
final class ClosedPort {
    let socket: Descriptor
    let address: SocketAddress
    /// A socket keeps its port when it is disconnected only if it was asked for: this one finds it.
    private let finder: Descriptor

    init() throws {
        finder = try Descriptor.bound()
        address = SocketAddress(ipv4: 0x7F00_0008, port: try finder.localAddress().port)
        socket = try Descriptor.bound(to: address)
        _ = socket.connect(to: SocketAddress(ipv4: 0x7F00_0009, port: 9))
    }

    /// From now on the socket takes what comes. The family AF_UNSPEC ends an association, udp(7).
    func open() {
        var nowhere = sockaddr_storage()
        _ = shim_connect(socket.number, &nowhere, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
}
