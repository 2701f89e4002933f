internal import CTowpathLinux

/// Where datagrams go and from which address: the name and the control data of a message, made once.
package final class DatagramRoute: Sendable {
    package let remote: SocketAddress
    // Written once in init, then only read by the kernel.
    private nonisolated(unsafe) let name: UnsafeMutablePointer<sockaddr_storage>
    private nonisolated(unsafe) let control: UnsafeMutableRawBufferPointer
    private let controlLength: Int

    package init(remote: SocketAddress, local: LocalAddress?) {
        self.remote = remote
        let control = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 16)
        // cmsg(3): CMSG_NXTHDR looks at the next header's length.
        control.initializeMemory(as: UInt8.self, repeating: 0)
        controlLength = local.map { ControlWriter.write($0, in: control) } ?? 0
        self.control = control
        name = .allocate(capacity: 1)
        name.initialize(to: remote.storage)
    }

    deinit {
        name.deallocate()
        control.deallocate()
    }

    fileprivate var head: msghdr {
        var head = msghdr()
        head.msg_name = UnsafeMutableRawPointer(name)
        head.msg_namelen = remote.length
        if controlLength > 0 {
            head.msg_control = control.baseAddress
            head.msg_controllen = controlLength
        }
        return head
    }
}

/// Sending datagrams: sendmsg(2), sendmmsg(2) and UDP_SEGMENT of udp(7).
extension Descriptor {
    /// Sends one datagram, or, with `segmentSize`, as many of that size as the bytes make (the last
    /// may be shorter).
    package func sendDatagram(
        _ bytes: UnsafeRawBufferPointer, _ route: DatagramRoute?, segmentSize: Int? = nil
    ) -> Transfer {
        var vector = iovec(
            iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
        return withUnsafeMutablePointer(to: &vector) { vector in
            var message = route?.head ?? msghdr()
            message.msg_iov = vector
            message.msg_iovlen = 1
            guard let segmentSize else { return Transfer(shim_sendmsg(number, &message)) }
            return ControlWriter.withSegmentSize(segmentSize, added: &message) {
                Transfer(shim_sendmsg(number, &$0))
            }
        }
    }

    /// Sends several datagrams in order; `.done` says how many were taken, at least one.
    package func sendDatagrams(
        _ datagrams: ArraySlice<[UInt8]>, _ route: DatagramRoute?
    ) -> Transfer {
        let datagrams = datagrams.prefix(DatagramBatch.capacity)
        let bytes = Array(datagrams.joined())
        let head = route?.head ?? msghdr()
        return bytes.withUnsafeBytes { bytes in
            withUnsafeTemporaryAllocation(of: iovec.self, capacity: datagrams.count) { vectors in
                Self.sendMany(number, head, datagrams, bytes, vectors)
            }
        }
    }

    private static func sendMany(
        _ number: Int32, _ head: msghdr, _ datagrams: ArraySlice<[UInt8]>,
        _ bytes: UnsafeRawBufferPointer, _ vectors: UnsafeMutableBufferPointer<iovec>
    ) -> Transfer {
        guard let first = vectors.baseAddress else { return .done(0) }
        return withUnsafeTemporaryAllocation(
            of: shim_mmsghdr.self, capacity: datagrams.count
        ) { messages in
            var offset = 0
            for (index, datagram) in datagrams.enumerated() {
                vectors[index] = iovec(
                    iov_base: UnsafeMutableRawPointer(
                        mutating: bytes.baseAddress.map { $0 + offset }),
                    iov_len: datagram.count)
                offset += datagram.count
                var message = shim_mmsghdr(msg_hdr: head, msg_len: 0)
                message.msg_hdr.msg_iov = first + index
                message.msg_hdr.msg_iovlen = 1
                messages.initializeElement(at: index, to: message)
            }
            return Transfer(shim_sendmmsg(number, messages.baseAddress, UInt32(datagrams.count)))
        }
    }
}

/// Control messages, cmsg(3).
private enum ControlWriter {
    /// The source address; returns how many bytes that takes.
    static func write(_ local: LocalAddress, in control: UnsafeMutableRawBufferPointer) -> Int {
        var message = msghdr()
        message.msg_control = control.baseAddress
        message.msg_controllen = control.count
        guard let header = shim_CMSG_FIRSTHDR(&message) else { return 0 }
        if local.isIPv4 {
            var info = shim_in_pktinfo()
            info.spec_dst.s_addr = UInt32(truncatingIfNeeded: local.low).bigEndian
            return put(info, Int32(IPPROTO_IP), SHIM_IP_PKTINFO, in: header)
        }
        var info = shim_in6_pktinfo()
        withUnsafeMutableBytes(of: &info.addr) { bytes in
            bytes.storeBytes(of: local.high.bigEndian, as: UInt64.self)
            bytes.storeBytes(of: local.low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
        info.ifindex = local.interface
        return put(info, Int32(IPPROTO_IPV6), SHIM_IPV6_PKTINFO, in: header)
    }

    /// Calls `body` with the message and UDP_SEGMENT behind the control data that it has.
    static func withSegmentSize(
        _ size: Int, added message: inout msghdr, _ body: (inout msghdr) -> Transfer
    ) -> Transfer {
        withUnsafeTemporaryAllocation(byteCount: 128, alignment: 16) { control in
            control.initializeMemory(as: UInt8.self, repeating: 0)
            let used = message.msg_controllen
            control.copyMemory(from: .init(start: message.msg_control, count: used))
            let end = control.baseAddress.map { $0 + used }
            if let header = end?.assumingMemoryBound(to: cmsghdr.self) {
                message.msg_control = control.baseAddress
                message.msg_controllen =
                    used + put(UInt16(clamping: size), SHIM_SOL_UDP, SHIM_UDP_SEGMENT, in: header)
            }
            return body(&message)
        }
    }

    private static func put<Value>(
        _ value: Value, _ level: Int32, _ type: Int32, in header: UnsafeMutablePointer<cmsghdr>
    ) -> Int {
        let size = MemoryLayout<Value>.size
        header.pointee.cmsg_level = level
        header.pointee.cmsg_type = type
        header.pointee.cmsg_len = shim_CMSG_LEN(size)
        withUnsafeBytes(of: value) { bytes in
            UnsafeMutableRawBufferPointer(start: shim_CMSG_DATA(header), count: size)
                .copyMemory(from: bytes)
        }
        return shim_CMSG_SPACE(size)
    }
}

extension Transfer {
    /// Whether a send with a segment size may have failed because of it: the device, the kernel, a
    /// missing checksum or the path's MTU does not allow it. udp(7), `udp_send_skb`.
    package var refusesSegments: Bool {
        switch self {
        case .failed(let code): [EINVAL, EIO, EMSGSIZE, EOPNOTSUPP].contains(code)
        case .done, .wouldBlock: false
        }
    }
}

/// How many datagrams at the front of a list the kernel can cut out of one send (UDP_SEGMENT): of one
/// size, the last perhaps shorter. Nil where that saves nothing.
package func segmentableRun(_ datagrams: ArraySlice<[UInt8]>) -> (count: Int, segmentSize: Int)? {
    guard let size = datagrams.first?.count, size > 0 else { return nil }
    // UDP_MAX_SEGMENTS of older kernels, and the largest IP packet less its headers.
    let limit = min(64, 65_000 / size)
    var count = 0
    for datagram in datagrams.prefix(limit) {
        guard datagram.count <= size, datagram.count > 0 else { break }
        count += 1
        if datagram.count < size { break }
    }
    return count > 1 ? (count, size) : nil
}
