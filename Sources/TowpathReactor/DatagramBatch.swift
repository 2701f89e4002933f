internal import CTowpathLinux

/// Room for one recvmmsg(2): one per thread, since a batch is taken apart before anybody suspends.
package final class DatagramBatch {
    package static let capacity = 32
    private static let slotSize = 65_536
    /// Packet info, traffic class, time and segment size need 112 bytes.
    private static let controlSize = 256

    /// What came with a datagram.
    package struct Header: Sendable {
        /// Nil where the sender has no IP address.
        package var remote: SocketAddress.Compact?
        package var local: LocalAddress?
        package var trafficClass: UInt8 = 0
        /// Nanoseconds of the host's real-time clock.
        package var receiveTime: UInt64?
        /// How large each datagram is where the kernel joined several (UDP_GRO).
        package var segmentSize: Int?
        package var isTruncated = false
    }

    private let bytes: UnsafeMutableRawPointer
    private let controls: UnsafeMutableRawPointer
    private let addresses: UnsafeMutablePointer<sockaddr_storage>
    private let vectors: UnsafeMutablePointer<iovec>
    private let messages: UnsafeMutablePointer<shim_mmsghdr>

    @exclusivity(unchecked) private var preparedSize = 0
    @exclusivity(unchecked) private var usedCount = 0

    private init() {
        let capacity = Self.capacity
        // Pages are touched only as datagrams fill them.
        bytes = .allocate(byteCount: capacity * Self.slotSize, alignment: 4_096)
        controls = .allocate(byteCount: capacity * Self.controlSize, alignment: 16)
        addresses = .allocate(capacity: capacity)
        vectors = .allocate(capacity: capacity)
        messages = .allocate(capacity: capacity)
    }

    deinit {
        bytes.deallocate()
        controls.deallocate()
        addresses.deallocate()
        vectors.deallocate()
        messages.deallocate()
    }

    /// The calling thread's batch.
    package static var current: DatagramBatch {
        if let pointer = pthread_getspecific(key) {
            return Unmanaged<DatagramBatch>.fromOpaque(pointer).takeUnretainedValue()
        }
        let batch = DatagramBatch()
        pthread_setspecific(key, Unmanaged.passRetained(batch).toOpaque())
        return batch
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key) { pointer in
            if let pointer { Unmanaged<DatagramBatch>.fromOpaque(pointer).release() }
        }
        return key
    }()

    /// Receives up to `limit` datagrams of up to `maximumSize` bytes; `.done` says how many came.
    package func receive(
        from socket: borrowing Descriptor, limit: Int, maximumSize: Int
    ) -> Transfer {
        prepare(maximumSize: min(maximumSize, Self.slotSize))
        let count = min(limit, Self.capacity)
        let transfer = Transfer(shim_recvmmsg(socket.number, messages, UInt32(count)))
        if case .done(let count) = transfer {
            usedCount = count
            for index in 0..<count { closePassedDescriptors(index) }
        }
        return transfer
    }

    /// The kernel has opened what came along in Unix datagrams (SCM_RIGHTS of unix(7)): nobody asked
    /// for it.
    private func closePassedDescriptors(_ index: Int) {
        let isNamed = messages[index].msg_hdr.msg_namelen > 0
        guard !isNamed || addresses[index].ss_family == sa_family_t(AF_UNIX) else { return }
        forEachControl(index) { level, type, data in
            guard level == SOL_SOCKET, type == SHIM_SCM_RIGHTS else { return }
            let header = data - shim_CMSG_LEN(0)
            let length = header.load(as: cmsghdr.self).cmsg_len - shim_CMSG_LEN(0)
            for offset in stride(from: 0, to: length - 3, by: 4) {
                _ = shim_close(data.loadUnaligned(fromByteOffset: offset, as: Int32.self))
            }
        }
    }

    /// The kernel writes lengths and flags over what it uses; the rest stands from the last time.
    private func prepare(maximumSize: Int) {
        let isNew = maximumSize != preparedSize
        for index in 0..<(isNew ? Self.capacity : usedCount) {
            vectors[index] = iovec(iov_base: bytes + index * Self.slotSize, iov_len: maximumSize)
            messages[index].msg_hdr = msghdr(
                msg_name: addresses + index,
                msg_namelen: socklen_t(MemoryLayout<sockaddr_storage>.size),
                msg_iov: vectors + index, msg_iovlen: 1,
                msg_control: controls + index * Self.controlSize,
                msg_controllen: Self.controlSize, msg_flags: 0)
        }
        preparedSize = maximumSize
        usedCount = 0
    }

    /// The bytes of a datagram, or of several joined ones; valid until the next receive.
    package func content(_ index: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            start: bytes + index * Self.slotSize, count: Int(messages[index].msg_len))
    }

    /// Who sent a datagram, of any family.
    package func remoteAddress(_ index: Int) -> SocketAddress {
        var remote = SocketAddress()
        remote.storage = addresses[index]
        remote.length = messages[index].msg_hdr.msg_namelen
        return remote
    }

    package func header(_ index: Int) -> Header {
        // Without a name the kernel leaves what the last datagram wrote there.
        let isNamed = messages[index].msg_hdr.msg_namelen > 0
        var header = Header(remote: isNamed ? SocketAddress.Compact(addresses + index) : nil)
        header.isTruncated = messages[index].msg_hdr.msg_flags & SHIM_MSG_TRUNC != 0
        forEachControl(index) { Self.read($0, $1, $2, &header) }
        return header
    }

    /// The address a datagram was sent to, be it a group's, and the interface it came through; nil
    /// where packet info was not asked for.
    package func destination(_ index: Int, port: UInt16) -> (SocketAddress, interface: UInt32)? {
        var destination: (SocketAddress, interface: UInt32)?
        forEachControl(index) { level, type, data in
            switch (level, type) {
            case (Int32(IPPROTO_IP), SHIM_IP_PKTINFO):
                let info = data.loadUnaligned(as: shim_in_pktinfo.self)
                destination = (
                    SocketAddress(ipv4: UInt32(bigEndian: info.addr.s_addr), port: port),
                    UInt32(bitPattern: info.ifindex)
                )
            case (Int32(IPPROTO_IPV6), SHIM_IPV6_PKTINFO):
                let info = data.loadUnaligned(as: shim_in6_pktinfo.self)
                destination = (SocketAddress(info, port: port), info.ifindex)
            default: break
            }
        }
        return destination
    }

    private func forEachControl(
        _ index: Int, _ body: (_ level: Int32, _ type: Int32, UnsafeRawPointer) -> Void
    ) {
        var control = shim_CMSG_FIRSTHDR(&messages[index].msg_hdr)
        while let current = control {
            if let data = shim_CMSG_DATA(current) {
                body(
                    current.pointee.cmsg_level, current.pointee.cmsg_type, UnsafeRawPointer(data))
            }
            control = shim_CMSG_NXTHDR(&messages[index].msg_hdr, current)
        }
    }

    private static func read(
        _ level: Int32, _ type: Int32, _ data: UnsafeRawPointer, _ header: inout Header
    ) {
        switch (level, type) {
        case (Int32(IPPROTO_IP), SHIM_IP_PKTINFO):
            header.local = LocalAddress(data.loadUnaligned(as: shim_in_pktinfo.self))
        case (Int32(IPPROTO_IPV6), SHIM_IPV6_PKTINFO):
            header.local = LocalAddress(data.loadUnaligned(as: shim_in6_pktinfo.self))
        case (Int32(IPPROTO_IP), SHIM_IP_TOS):
            header.trafficClass = data.load(as: UInt8.self)
        case (Int32(IPPROTO_IPV6), SHIM_IPV6_TCLASS):
            header.trafficClass = UInt8(truncatingIfNeeded: data.loadUnaligned(as: Int32.self))
        case (SOL_SOCKET, SHIM_SO_TIMESTAMPNS):
            let time = data.loadUnaligned(as: timespec.self)
            header.receiveTime = UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
        case (SHIM_SOL_UDP, SHIM_UDP_GRO):
            header.segmentSize = Int(data.loadUnaligned(as: Int32.self))
        default: break
        }
    }
}

extension SocketAddress {
    /// Link-local addresses, of groups too, need the interface: `fe80::/10`, `ff01::/16`, `ff02::/16`.
    fileprivate init(_ info: shim_in6_pktinfo, port: UInt16) {
        let (high, low) = info.halves
        let isLocal = high >> 54 == 0x3FA || [0xFF01, 0xFF02].contains(high >> 48 & 0xFF0F)
        self.init(ipv6High: high, low: low, scope: isLocal ? info.ifindex : 0, port: port)
    }
}
