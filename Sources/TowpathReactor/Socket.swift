internal import CTowpathLinux

/// The socket calls. Those that move bytes return a `Transfer`; those that set up throw.
extension Descriptor {
    package enum SocketType: Sendable, Equatable {
        case stream, datagram

        var number: Int32 {
            switch self {
            case .stream: SHIM_SOCK_STREAM
            case .datagram: SHIM_SOCK_DGRAM
            }
        }
    }

    package static func socket(
        _ family: SocketAddress.Family, _ type: SocketType, multipath: Bool = false
    ) throws(SystemError) -> Descriptor {
        let domain =
            switch family {
            case .ipv4: AF_INET
            case .ipv6: AF_INET6
            case .unix, .other: AF_UNIX
            }
        let protocolNumber = multipath ? SHIM_IPPROTO_MPTCP : 0
        let number = try check(
            shim_socket(domain, type.number, protocolNumber),
            multipath ? "socket(IPPROTO_MPTCP)" : "socket")
        return Descriptor(owning: Int32(number))
    }

    /// The numbers of two joined Unix sockets, for the caller to own.
    package static func pair(_ type: SocketType) throws(SystemError) -> (Int32, Int32) {
        var numbers: [Int32] = [-1, -1]
        try check(shim_socketpair(type.number, &numbers), "socketpair")
        return (numbers[0], numbers[1])
    }

    package func bind(to address: SocketAddress) throws(SystemError) {
        let result = withUnsafePointer(to: address.storage) {
            shim_bind(number, $0, address.length)
        }
        try check(result, "bind")
    }

    package func listen(backlog: Int32) throws(SystemError) {
        try check(shim_listen(number, backlog), "listen")
    }

    /// `.done` if the connection stands at once (Unix, UDP), `.wouldBlock` while it is under way;
    /// of a Unix socket that means that the listener's queue is full, and nothing is under way.
    package func connect(to address: SocketAddress) -> Transfer {
        let result = withUnsafePointer(to: address.storage) {
            shim_connect(number, $0, address.length)
        }
        return result == -Int(EINPROGRESS) ? .wouldBlock : Transfer(result)
    }

    /// The error that a connection attempt ended with, 0 for none. Reading it clears it.
    package func takeError() -> Int32 {
        do { return try get(.error) } catch { return error.code }
    }

    package func localAddress() throws(SystemError) -> SocketAddress {
        var address = SocketAddress()
        try check(shim_getsockname(number, &address.storage, &address.length), "getsockname")
        return address
    }

    package func remoteAddress() throws(SystemError) -> SocketAddress {
        var address = SocketAddress()
        try check(shim_getpeername(number, &address.storage, &address.length), "getpeername")
        return address
    }

    package func receive(into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
        Transfer(shim_recv(number, buffer.baseAddress, buffer.count))
    }

    package func send(_ bytes: UnsafeRawBufferPointer) -> Transfer {
        Transfer(shim_send(number, bytes.baseAddress, bytes.count))
    }

    /// One sendmsg(2) of what lies behind `offset` in several pieces taken as one; at most 64 pieces.
    package func send(gathering pieces: [[UInt8]], from offset: Int) -> Transfer {
        var skipped = 0
        var first = 0
        while first < pieces.count, skipped + pieces[first].count <= offset {
            skipped += pieces[first].count
            first += 1
        }
        return Self.gather(pieces[first...].prefix(64), skipping: offset - skipped, []) { vectors in
            var vectors = vectors
            return Transfer(shim_sendv(number, &vectors, vectors.count))
        }
    }

    /// Holds the pieces in place, one inside the other, while `body` runs.
    private static func gather(
        _ pieces: ArraySlice<[UInt8]>, skipping offset: Int, _ vectors: [iovec],
        _ body: ([iovec]) -> Transfer
    ) -> Transfer {
        guard let piece = pieces.first else { return body(vectors) }
        return piece.withUnsafeBytes { bytes in
            let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            let vector = iovec(
                iov_base: UnsafeMutableRawPointer(mutating: rest.baseAddress), iov_len: rest.count)
            return gather(pieces.dropFirst(), skipping: 0, vectors + [vector], body)
        }
    }

    /// sendfile(2) from `offset`. Reads the disk and can raise SIGPIPE: only on the blocking pool.
    package func sendFile(
        _ file: borrowing Descriptor, from offset: Int, count: Int
    ) -> Transfer {
        var position = off_t(offset)
        return Transfer(shim_sendfile(number, file.number, &position, count))
    }

    /// Sends a FIN after everything that was sent. ENOTCONN means that the peer is gone already.
    package func shutdownOutput() {
        _ = shim_shutdown(number, Int32(SHUT_WR))
    }
}

/// What accept(2) gave.
package enum Accepted: ~Copyable {
    case connection(Descriptor, SocketAddress)
    case none
    /// The peer was gone before it was accepted, or the network had a passing fault: try again.
    case passing(Int32)
    /// No descriptors or no memory: wait, and tell.
    case exhausted(Int32)
    case failed(Int32)

    package var isNone: Bool {
        switch self {
        case .none: true
        default: false
        }
    }

    /// Sorts the errors of accept(2): the connection's own, those of the host, and those that end
    /// the listener.
    package static func failure(_ code: Int32) -> Accepted {
        switch code {
        case EAGAIN: .none
        case EINTR, ECONNABORTED, EPROTO, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH,
            EOPNOTSUPP, ENETUNREACH, ETIMEDOUT, EPERM:
            .passing(code)
        case EMFILE, ENFILE, ENOBUFS, ENOMEM: .exhausted(code)
        default: .failed(code)
        }
    }
}

extension Descriptor {
    package func accept() -> Accepted {
        var address = SocketAddress()
        let result = shim_accept(number, &address.storage, &address.length)
        guard result < 0 else {
            return .connection(Descriptor(owning: Int32(result)), address)
        }
        return .failure(Int32(-result))
    }

    /// What lies in the kernel to be read, in bytes (FIONREAD of tcp(7)).
    package var unreadByteCount: Int { max(0, shim_ioctl_int(number, SHIM_SIOCINQ)) }
}
