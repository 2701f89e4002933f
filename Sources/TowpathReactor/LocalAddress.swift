internal import CTowpathLinux

/// The address a datagram was sent to, and the interface it came through: where an answer must come
/// from (IP_PKTINFO of ip(7), IPV6_PKTINFO of ipv6(7)).
package struct LocalAddress: Hashable, Sendable {
    package let high, low: UInt64
    package let interface: UInt32
    package let isIPv4: Bool

    init(_ info: shim_in_pktinfo) {
        // spec_dst is the local address even where the datagram went to a broadcast one.
        self.init(
            high: 0, low: UInt64(UInt32(bigEndian: info.spec_dst.s_addr)),
            interface: UInt32(bitPattern: info.ifindex), isIPv4: true)
    }

    init(_ info: shim_in6_pktinfo) {
        let (high, low) = info.halves
        self.init(high: high, low: low, interface: info.ifindex, isIPv4: false)
    }

    private init(high: UInt64, low: UInt64, interface: UInt32, isIPv4: Bool) {
        self.high = high
        self.low = low
        self.isIPv4 = isIPv4
        // The interface matters only where the address is not unique in the host.
        let isLinkLocal = !isIPv4 && high >> 54 == 0x3FA
        self.interface = isLinkLocal ? interface : 0
    }

    /// A group's address (RFC 1112, RFC 4291 §2.7).
    package var isMulticast: Bool { isIPv4 ? low >> 28 == 0xE : high >> 56 == 0xFF }

    package func address(port: UInt16) -> SocketAddress {
        isIPv4
            ? SocketAddress(ipv4: UInt32(truncatingIfNeeded: low), port: port)
            : SocketAddress(ipv6High: high, low: low, scope: interface, port: port)
    }
}

extension shim_in6_pktinfo {
    var halves: (high: UInt64, low: UInt64) {
        withUnsafeBytes(of: addr) {
            (
                UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)),
                UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
    }
}
