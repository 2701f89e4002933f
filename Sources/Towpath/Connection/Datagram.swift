internal import TowpathReactor

/// One datagram as it was received: its bytes and what came with it.
public struct Datagram: Sendable {
    /// Explicit congestion notification, RFC 3168.
    public enum ECN: UInt8, Sendable {
        /// The sender does not take part.
        case notCapable = 0
        /// ECT(1).
        case capable1 = 1
        /// ECT(0).
        case capable0 = 2
        /// A router on the way was congested.
        case congestionExperienced = 3
    }

    /// The addresses, which many datagrams share.
    final class Path: Sendable {
        let remote: Endpoint?
        let local: Endpoint?

        init(remote: Endpoint?, local: Endpoint?) {
            self.remote = remote
            self.local = local
        }
    }

    private let path: Path

    /// The content, possibly of zero length.
    public let bytes: [UInt8]
    /// Whether the datagram was longer than ``UDP/maximumReceiveSize(_:)`` and this is its beginning.
    public let isTruncated: Bool
    /// What the routers said of congestion.
    public let ecn: ECN
    /// When the kernel received it, since 1970-01-01 00:00 UTC, if ``UDP/receiveTime(_:)`` asks for it.
    public let receiveTime: Duration?

    /// Who sent it; nil for an unnamed Unix socket.
    public var remoteEndpoint: Endpoint? { path.remote }
    /// Where it was sent to.
    public var localEndpoint: Endpoint? { path.local }
}

extension Datagram {
    init(_ bytes: [UInt8], _ header: DatagramBatch.Header, _ path: Path, isTruncated: Bool) {
        self.bytes = bytes
        self.path = path
        self.isTruncated = isTruncated
        ecn = ECN(rawValue: header.trafficClass & 3) ?? .notCapable
        receiveTime = header.receiveTime.map { .nanoseconds($0) }
    }

    /// Takes apart what the kernel joined (UDP_GRO): all datagrams of a content but the first.
    static func others(
        in content: UnsafeRawBufferPointer, _ header: DatagramBatch.Header, _ path: Path
    ) -> [Datagram] {
        guard let size = header.segmentSize, size > 0, content.count > size else { return [] }
        return stride(from: size, to: content.count, by: size).map { start in
            let end = min(start + size, content.count)
            return Datagram(
                [UInt8](UnsafeRawBufferPointer(rebasing: content[start..<end])), header, path,
                isTruncated: header.isTruncated && end == content.count)
        }
    }

    /// The only datagram of a content, or the first of those the kernel joined.
    static func first(
        in content: UnsafeRawBufferPointer, _ header: DatagramBatch.Header, _ path: Path
    ) -> Datagram {
        let end = min(header.segmentSize ?? content.count, content.count)
        return Datagram(
            [UInt8](UnsafeRawBufferPointer(rebasing: content[..<end])), header, path,
            isTruncated: header.isTruncated && end == content.count)
    }
}
