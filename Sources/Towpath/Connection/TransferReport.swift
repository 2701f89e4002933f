internal import TowpathReactor

/// What TCP knows of a connection: TCP_INFO of tcp(7) at one moment. What the host's kernel does not
/// report is zero.
public struct TransferReport: Sendable {
    /// Bytes that were sent, with retransmissions.
    public let sentByteCount: UInt64
    /// Bytes the peer has acknowledged.
    public let acknowledgedByteCount: UInt64
    /// Bytes that were received in order.
    public let receivedByteCount: UInt64
    /// Bytes that were sent again.
    public let retransmittedByteCount: UInt64
    /// Segments sent and received.
    public let sentSegmentCount: Int, receivedSegmentCount: Int
    /// Segments that were sent again.
    public let retransmittedSegmentCount: Int
    /// Segments that arrived out of order.
    public let outOfOrderSegmentCount: Int
    /// Segments the peer reported to have got twice.
    public let duplicateSegmentCount: Int
    /// The round-trip time, smoothed, and its variation (RFC 6298).
    public let smoothedRoundTripTime: Duration, roundTripTimeVariation: Duration
    /// The least round-trip time seen lately.
    public let minimumRoundTripTime: Duration
    /// The congestion window, in segments.
    public let congestionWindow: Int
    /// The largest segment sent, and the path's MTU, in bytes.
    public let maximumSegmentSize: Int, pathMTU: Int
    /// The rate of delivery measured last, in bytes per second.
    public let deliveryRate: UInt64
    /// Bytes received that nobody has read.
    public let unreadByteCount: Int
    /// Bytes accepted by `send` that the peer has not acknowledged.
    public let unacknowledgedByteCount: Int
    /// Bytes accepted by `send` that have not been sent once.
    public let unsentByteCount: Int
}

extension TransferReport {
    init(_ info: TCPInformation) {
        sentByteCount = info.bytesSent
        acknowledgedByteCount = info.bytesAcknowledged
        receivedByteCount = info.bytesReceived
        retransmittedByteCount = info.bytesRetransmitted
        sentSegmentCount = Int(info.segmentsSent)
        receivedSegmentCount = Int(info.segmentsReceived)
        retransmittedSegmentCount = Int(info.segmentsRetransmitted)
        outOfOrderSegmentCount = Int(info.segmentsOutOfOrder)
        duplicateSegmentCount = Int(info.segmentsDuplicated)
        smoothedRoundTripTime = .microseconds(info.roundTrip)
        roundTripTimeVariation = .microseconds(info.roundTripVariation)
        minimumRoundTripTime = .microseconds(info.minimumRoundTrip)
        congestionWindow = Int(info.congestionWindow)
        maximumSegmentSize = Int(info.maximumSegment)
        pathMTU = Int(info.pathMTU)
        deliveryRate = info.deliveryRate
        unreadByteCount = info.unread
        unacknowledgedByteCount = info.unacknowledged
        unsentByteCount = info.unsent
    }
}
