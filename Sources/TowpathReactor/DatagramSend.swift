internal import CTowpathLinux

/// Where datagrams go and from which address; nil for a connected socket.
package struct DatagramRoute: Sendable {
    package let remote: SocketAddress
    package let local: LocalAddress?

    package init(remote: SocketAddress, local: LocalAddress?) {
        self.remote = remote
        self.local = local
    }
}

/// Sending datagrams: sendmsg(2), sendmmsg(2) and UDP_SEGMENT of udp(7).
extension Descriptor {
    /// Sends one datagram, or, with `segmentSize`, as many of that size as the bytes make (the last
    /// may be shorter).
    package func sendDatagram(
        _ bytes: UnsafeRawBufferPointer, _ route: DatagramRoute?, segmentSize: Int? = nil
    ) -> Transfer {
        withMessageHead(route, segmentSize: segmentSize) { head in
            var vector = iovec(
                iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count
            )
            return withUnsafeMutablePointer(to: &vector) { vector in
                var message = head
                message.msg_iov = vector
                message.msg_iovlen = 1
                return Transfer(shim_sendmsg(number, &message))
            }
        }
    }

    /// Sends several datagrams in order; `.done` says how many were taken, at least one.
    package func sendDatagrams(
        _ datagrams: ArraySlice<[UInt8]>, _ route: DatagramRoute?
    ) -> Transfer {
        let datagrams = datagrams.prefix(DatagramBatch.capacity)
        let bytes = Array(datagrams.joined())
        return withMessageHead(route, segmentSize: nil) { head in
            bytes.withUnsafeBytes { bytes in
                withUnsafeTemporaryAllocation(of: iovec.self, capacity: datagrams.count) {
                    vectors in
                    Self.sendMany(number, head, datagrams, bytes, vectors)
                }
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

    /// A message with the route's name and control data, without bytes yet.
    private func withMessageHead(
        _ route: DatagramRoute?, segmentSize: Int?, _ body: (msghdr) -> Transfer
    ) -> Transfer {
        var head = msghdr()
        guard route != nil || segmentSize != nil else { return body(head) }
        return withUnsafeTemporaryAllocation(byteCount: 128, alignment: 16) { control in
            // cmsg(3): CMSG_NXTHDR looks at the next header's length.
            control.initializeMemory(as: UInt8.self, repeating: 0)
            head.msg_control = control.baseAddress
            head.msg_controllen = control.count
            head.msg_controllen = Self.write(route?.local, segmentSize, to: &head)
            if head.msg_controllen == 0 { head.msg_control = nil }
            guard var name = route?.remote.storage else { return body(head) }
            head.msg_namelen = route?.remote.length ?? 0
            return withUnsafeMutablePointer(to: &name) { name in
                head.msg_name = UnsafeMutableRawPointer(name)
                return body(head)
            }
        }
    }

    private static func write(
        _ local: LocalAddress?, _ segmentSize: Int?, to message: inout msghdr
    ) -> Int {
        var used = 0
        var control = shim_CMSG_FIRSTHDR(&message)
        if let local, let header = control {
            if local.isIPv4 {
                var info = shim_in_pktinfo()
                info.spec_dst.s_addr = UInt32(truncatingIfNeeded: local.low).bigEndian
                used += put(info, Int32(IPPROTO_IP), SHIM_IP_PKTINFO, in: header)
            } else {
                var info = shim_in6_pktinfo()
                withUnsafeMutableBytes(of: &info.addr) { bytes in
                    bytes.storeBytes(of: local.high.bigEndian, as: UInt64.self)
                    bytes.storeBytes(of: local.low.bigEndian, toByteOffset: 8, as: UInt64.self)
                }
                info.ifindex = local.interface
                used += put(info, Int32(IPPROTO_IPV6), SHIM_IPV6_PKTINFO, in: header)
            }
            control = shim_CMSG_NXTHDR(&message, header)
        }
        if let segmentSize, let header = control {
            used += put(UInt16(clamping: segmentSize), SHIM_SOL_UDP, SHIM_UDP_SEGMENT, in: header)
        }
        return used
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
