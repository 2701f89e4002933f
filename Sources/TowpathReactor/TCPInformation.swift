internal import CTowpathLinux

/// TCP_INFO of tcp(7), and what lies in the socket's queues. What an older kernel does not report is
/// zero. Times are in microseconds.
package struct TCPInformation: Sendable {
    package let bytesSent, bytesAcknowledged, bytesReceived, bytesRetransmitted: UInt64
    package let segmentsSent, segmentsReceived, segmentsRetransmitted: UInt32
    package let segmentsOutOfOrder, segmentsDuplicated: UInt32
    package let roundTrip, roundTripVariation, minimumRoundTrip: UInt32
    package let congestionWindow, maximumSegment, pathMTU: UInt32
    package let deliveryRate: UInt64
    package let unread, unacknowledged, unsent: Int

    package init(_ socket: borrowing Descriptor) throws(SystemError) {
        var info = shim_tcp_info()
        var length = socklen_t(MemoryLayout<shim_tcp_info>.size)
        let result = shim_getsockopt(
            socket.number, Int32(IPPROTO_TCP), SHIM_TCP_INFO, &info, &length)
        try check(result, "getsockopt(TCP_INFO)")
        bytesSent = info.bytes_sent
        bytesAcknowledged = info.bytes_acked
        bytesReceived = info.bytes_received
        bytesRetransmitted = info.bytes_retrans
        segmentsSent = info.segs_out
        segmentsReceived = info.segs_in
        segmentsRetransmitted = info.total_retrans
        segmentsOutOfOrder = info.rcv_ooopack
        segmentsDuplicated = info.dsack_dups
        roundTrip = info.rtt
        roundTripVariation = info.rttvar
        minimumRoundTrip = info.min_rtt == .max ? 0 : info.min_rtt
        congestionWindow = info.snd_cwnd
        maximumSegment = info.snd_mss
        pathMTU = info.pmtu
        deliveryRate = info.delivery_rate
        unread = max(0, shim_ioctl_int(socket.number, SHIM_SIOCINQ))
        unacknowledged = max(0, shim_ioctl_int(socket.number, SHIM_SIOCOUTQ))
        unsent = Int(info.notsent_bytes)
    }
}
