internal import CTowpathLinux

/// What a path takes, as far as the kernel knows it: IP_MTU of ip(7), for connected sockets.
extension Descriptor {
    /// The payload of the largest UDP datagram that needs no fragments; of a Unix datagram, what the
    /// send buffer takes.
    package func maximumDatagramSize() throws(SystemError) -> Int {
        switch try localAddress().family {
        // 20 bytes of IPv4 header without options, 40 of IPv6, 8 of UDP; no IPv4 packet is longer
        // than 65,535 bytes, though loopback's MTU is.
        case .ipv4: return min(Int(try get(.ipMTU)), 65_535) - 28
        case .ipv6: return Int(try get(.ipv6MTU)) - 48
        case .unix, .other: return Int(try get(.sendBuffer)) / 2
        }
    }

    /// The same for a peer of a socket that is not connected: a socket is made to ask.
    package static func pathMaximum(to remote: SocketAddress) throws(SystemError) -> Int {
        let remote = remote.unmapped
        let probe = try socket(remote.family, .datagram)
        if case .failed(let code) = probe.connect(to: remote) { throw SystemError(code, "connect") }
        return try probe.maximumDatagramSize()
    }
}

extension SocketAddress {
    /// The IPv4 address that a dual-stack socket shows as an IPv6 one; any other as it is.
    fileprivate var unmapped: SocketAddress {
        guard family == .ipv6, ipv6.high == 0, ipv6.low >> 32 == 0xFFFF else { return self }
        return SocketAddress(ipv4: UInt32(truncatingIfNeeded: ipv6.low), port: port)
    }
}
