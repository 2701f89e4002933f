internal import CTowpathLinux

/// Groups: ip(7), ipv6(7), RFC 3678.
extension Descriptor {
    /// Prepares an unbound datagram socket for groups. Other programs may share its port, and it hears
    /// no groups but its own.
    package func prepareForGroups(
        _ family: SocketAddress.Family, hopLimit: Int32, loopback: Bool
    ) throws(SystemError) {
        try set(.reuseAddress, to: 1)
        if family == .ipv4 {
            try set(.ipMulticastAll, to: 0)
            try set(.ipPacketInfo, to: 1)
            try set(.ipReceiveTypeOfService, to: 1)
            try set(.ipMulticastTimeToLive, to: hopLimit)
            try set(.ipMulticastLoop, to: loopback ? 1 : 0)
        } else {
            try set(.ipv6Only, to: 1)
            try set(.ipv6MulticastAll, to: 0)
            try set(.ipv6ReceivePacketInfo, to: 1)
            try set(.ipv6ReceiveTrafficClass, to: 1)
            try set(.ipv6MulticastHops, to: hopLimit)
            try set(.ipv6MulticastLoop, to: loopback ? 1 : 0)
        }
    }

    /// Joins a group on one interface, for datagrams of one sender or of any.
    package func join(
        _ group: SocketAddress, from source: SocketAddress?, on interface: UInt32
    ) throws(SystemError) {
        let level = Int32(group.family == .ipv4 ? IPPROTO_IP : IPPROTO_IPV6)
        var storage = group.storage
        guard var sender = source?.storage else {
            try check(
                shim_join_group(number, level, interface, &storage, nil),
                "setsockopt(MCAST_JOIN_GROUP)")
            return
        }
        try check(
            shim_join_group(number, level, interface, &storage, &sender),
            "setsockopt(MCAST_JOIN_SOURCE_GROUP)")
    }

    /// Sends datagrams to groups through this interface from now on.
    package func sendToGroups(
        through interface: UInt32, _ family: SocketAddress.Family
    ) throws(SystemError) {
        if family == .ipv4 {
            try check(shim_ip_multicast_if(number, interface), "setsockopt(IP_MULTICAST_IF)")
        } else {
            try set(.ipv6MulticastInterface, to: Int32(bitPattern: interface))
        }
    }

    /// The indices of the interfaces that are up and take part in multicast.
    package static func multicastInterfaces() throws(SystemError) -> [UInt32] {
        var indices = [UInt32](repeating: 0, count: 1_024)
        let count = try check(
            shim_multicast_interfaces(&indices, indices.count), "getifaddrs")
        return Array(indices.prefix(count))
    }
}
