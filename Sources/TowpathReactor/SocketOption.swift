internal import CTowpathLinux

/// An integer socket option by the kernel's name: socket(7), tcp(7), ip(7), ipv6(7), udp(7).
package struct SocketOption: Sendable {
    let level: Int32
    let number: Int32
    package let name: String

    init(_ level: Int32, _ number: Int32, _ name: String) {
        self.level = level
        self.number = number
        self.name = name
    }

    package static let error = SocketOption(SOL_SOCKET, SO_ERROR, "SO_ERROR")
    package static let type = SocketOption(SOL_SOCKET, SO_TYPE, "SO_TYPE")
    package static let domain = SocketOption(SOL_SOCKET, SHIM_SO_DOMAIN, "SO_DOMAIN")
    package static let protocolNumber = SocketOption(
        SOL_SOCKET, SHIM_SO_PROTOCOL, "SO_PROTOCOL")
    package static let isListening = SocketOption(SOL_SOCKET, SO_ACCEPTCONN, "SO_ACCEPTCONN")
    package static let reuseAddress = SocketOption(SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR")
    package static let reusePort = SocketOption(
        SOL_SOCKET, SHIM_SO_REUSEPORT, "SO_REUSEPORT")
    package static let keepAlive = SocketOption(SOL_SOCKET, SO_KEEPALIVE, "SO_KEEPALIVE")
    package static let sendBuffer = SocketOption(SOL_SOCKET, SO_SNDBUF, "SO_SNDBUF")
    package static let receiveBuffer = SocketOption(SOL_SOCKET, SO_RCVBUF, "SO_RCVBUF")
    package static let priority = SocketOption(
        SOL_SOCKET, SHIM_SO_PRIORITY, "SO_PRIORITY")
    package static let mark = SocketOption(SOL_SOCKET, SHIM_SO_MARK, "SO_MARK")
    package static let noChecksum = SocketOption(
        SOL_SOCKET, SHIM_SO_NO_CHECK, "SO_NO_CHECK")
    package static let timestamps = SocketOption(
        SOL_SOCKET, SHIM_SO_TIMESTAMPNS, "SO_TIMESTAMPNS")

    package static let noDelay = SocketOption(Int32(IPPROTO_TCP), TCP_NODELAY, "TCP_NODELAY")
    package static let keepIdle = SocketOption(Int32(IPPROTO_TCP), TCP_KEEPIDLE, "TCP_KEEPIDLE")
    package static let keepInterval = SocketOption(
        Int32(IPPROTO_TCP), TCP_KEEPINTVL, "TCP_KEEPINTVL")
    package static let keepCount = SocketOption(Int32(IPPROTO_TCP), TCP_KEEPCNT, "TCP_KEEPCNT")
    package static let maximumSegment = SocketOption(Int32(IPPROTO_TCP), TCP_MAXSEG, "TCP_MAXSEG")
    package static let userTimeout = SocketOption(
        Int32(IPPROTO_TCP), SHIM_TCP_USER_TIMEOUT, "TCP_USER_TIMEOUT")
    package static let notSentLowWater = SocketOption(
        Int32(IPPROTO_TCP), SHIM_TCP_NOTSENT_LOWAT, "TCP_NOTSENT_LOWAT")
    package static let fastOpen = SocketOption(
        Int32(IPPROTO_TCP), SHIM_TCP_FASTOPEN, "TCP_FASTOPEN")
    package static let fastOpenConnect = SocketOption(
        Int32(IPPROTO_TCP), SHIM_TCP_FASTOPEN_CONNECT, "TCP_FASTOPEN_CONNECT")

    package static let ipTypeOfService = SocketOption(
        Int32(IPPROTO_IP), SHIM_IP_TOS, "IP_TOS")
    package static let ipTimeToLive = SocketOption(
        Int32(IPPROTO_IP), SHIM_IP_TTL, "IP_TTL")
    package static let ipMTUDiscover = SocketOption(
        Int32(IPPROTO_IP), SHIM_IP_MTU_DISCOVER, "IP_MTU_DISCOVER")
    package static let ipMTU = SocketOption(
        Int32(IPPROTO_IP), SHIM_IP_MTU, "IP_MTU")
    package static let ipPacketInfo = SocketOption(
        Int32(IPPROTO_IP), SHIM_IP_PKTINFO, "IP_PKTINFO")
    package static let ipReceiveTypeOfService = SocketOption(
        Int32(IPPROTO_IP), SHIM_IP_RECVTOS, "IP_RECVTOS")
    package static let ipBindAddressNoPort = SocketOption(
        Int32(IPPROTO_IP), SHIM_IP_BIND_ADDRESS_NO_PORT, "IP_BIND_ADDRESS_NO_PORT")

    package static let ipv6Only = SocketOption(
        Int32(IPPROTO_IPV6), SHIM_IPV6_V6ONLY, "IPV6_V6ONLY")
    package static let ipv6TrafficClass = SocketOption(
        Int32(IPPROTO_IPV6), SHIM_IPV6_TCLASS, "IPV6_TCLASS")
    package static let ipv6Hops = SocketOption(
        Int32(IPPROTO_IPV6), SHIM_IPV6_UNICAST_HOPS, "IPV6_UNICAST_HOPS")
    package static let ipv6MTUDiscover = SocketOption(
        Int32(IPPROTO_IPV6), SHIM_IPV6_MTU_DISCOVER, "IPV6_MTU_DISCOVER")
    package static let ipv6MTU = SocketOption(
        Int32(IPPROTO_IPV6), SHIM_IPV6_MTU, "IPV6_MTU")
    package static let ipv6ReceivePacketInfo = SocketOption(
        Int32(IPPROTO_IPV6), SHIM_IPV6_RECVPKTINFO, "IPV6_RECVPKTINFO")
    package static let ipv6ReceiveTrafficClass = SocketOption(
        Int32(IPPROTO_IPV6), SHIM_IPV6_RECVTCLASS, "IPV6_RECVTCLASS")

    package static let ipMulticastAll = SocketOption(
        Int32(IPPROTO_IP), SHIM_IP_MULTICAST_ALL, "IP_MULTICAST_ALL")
    package static let ipMulticastLoop = SocketOption(
        Int32(IPPROTO_IP), SHIM_IP_MULTICAST_LOOP, "IP_MULTICAST_LOOP")
    package static let ipMulticastTimeToLive = SocketOption(
        Int32(IPPROTO_IP), SHIM_IP_MULTICAST_TTL, "IP_MULTICAST_TTL")
    package static let ipv6MulticastAll = SocketOption(
        Int32(IPPROTO_IPV6), SHIM_IPV6_MULTICAST_ALL, "IPV6_MULTICAST_ALL")
    package static let ipv6MulticastLoop = SocketOption(
        Int32(IPPROTO_IPV6), SHIM_IPV6_MULTICAST_LOOP, "IPV6_MULTICAST_LOOP")
    package static let ipv6MulticastHops = SocketOption(
        Int32(IPPROTO_IPV6), SHIM_IPV6_MULTICAST_HOPS, "IPV6_MULTICAST_HOPS")
    package static let ipv6MulticastInterface = SocketOption(
        Int32(IPPROTO_IPV6), SHIM_IPV6_MULTICAST_IF, "IPV6_MULTICAST_IF")

    package static let udpReceiveOffload = SocketOption(
        SHIM_SOL_UDP, SHIM_UDP_GRO, "UDP_GRO")
}

/// Values of IP_MTU_DISCOVER and IPV6_MTU_DISCOVER, ip(7).
package enum PathMTUDiscovery: Int32, Sendable {
    /// Packets may be fragmented on the way.
    case none = 0
    /// The kernel's default for UDP: fragment here where a packet exceeds the known path MTU.
    case want = 1
    /// Never fragment: a datagram that exceeds the path MTU fails with EMSGSIZE.
    case always = 2
}

extension Descriptor {
    package func set(_ option: SocketOption, to value: Int32) throws(SystemError) {
        var value = value
        let result = shim_setsockopt(
            number, option.level, option.number, &value, socklen_t(MemoryLayout<Int32>.size))
        try check(result, "setsockopt(\(option.name))")
    }

    package func get(_ option: SocketOption) throws(SystemError) -> Int32 {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        let result = shim_getsockopt(number, option.level, option.number, &value, &length)
        try check(result, "getsockopt(\(option.name))")
        return value
    }

    package func isType(_ type: SocketType) throws(SystemError) -> Bool {
        try get(.type) == type.number
    }

    /// SO_BINDTODEVICE, socket(7).
    package func bindToInterface(_ name: String) throws(SystemError) {
        let bytes = Array(name.utf8)
        try check(
            shim_setsockopt(
                number, SOL_SOCKET, SHIM_SO_BINDTODEVICE, bytes,
                socklen_t(bytes.count)),
            "setsockopt(SO_BINDTODEVICE)")
    }

    package func boundInterface() throws(SystemError) -> String {
        var bytes = [UInt8](repeating: 0, count: Int(IF_NAMESIZE))
        var length = socklen_t(bytes.count)
        try check(
            shim_getsockopt(
                number, SOL_SOCKET, SHIM_SO_BINDTODEVICE, &bytes, &length),
            "getsockopt(SO_BINDTODEVICE)")
        return String(decoding: bytes.prefix(Int(length)).prefix { $0 != 0 }, as: UTF8.self)
    }

    /// With SO_LINGER{1, 0} close(2) resets a TCP connection instead of finishing it.
    package func resetOnClose() {
        var value = linger(l_onoff: 1, l_linger: 0)
        _ = shim_setsockopt(
            number, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
    }

    /// SO_PEERCRED, unix(7): who made the other end.
    package func peerCredentials() throws(SystemError) -> (pid: Int32, uid: UInt32, gid: UInt32) {
        var value = shim_ucred()
        var length = socklen_t(MemoryLayout<shim_ucred>.size)
        try check(
            shim_getsockopt(
                number, SOL_SOCKET, SHIM_SO_PEERCRED, &value, &length),
            "getsockopt(SO_PEERCRED)")
        return (value.pid, value.uid, value.gid)
    }
}
