package import CTowpathLinux

/// A socket address as the kernel reads it: `sockaddr_in`, `sockaddr_in6` or `sockaddr_un`.
package struct SocketAddress: Sendable {
    package internal(set) var storage: sockaddr_storage
    package internal(set) var length: socklen_t

    package enum Family: UInt8, Sendable { case ipv4, ipv6, unix, other }

    init() {
        storage = sockaddr_storage()
        length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    }

    /// An IPv4 address in host byte order.
    package init(ipv4: UInt32, port: UInt16) {
        self.init()
        shim_make_in(&storage, ipv4, port)
        length = socklen_t(MemoryLayout<sockaddr_in>.size)
    }

    /// An IPv6 address as two halves in host byte order. `scope` is an interface index, 0 for none.
    package init(ipv6High: UInt64, low: UInt64, scope: UInt32, port: UInt16) {
        self.init()
        shim_make_in6(&storage, ipv6High, low, scope, port)
        length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    }

    /// A Unix address, or nil if the name is empty or longer than 107 bytes (unix(7)).
    package init?(unix name: [UInt8], abstract: Bool) {
        self.init()
        let length = shim_make_un(&storage, name, name.count, abstract ? 1 : 0)
        guard length > 0 else { return nil }
        self.length = length
    }

    package var family: Family {
        guard length >= socklen_t(MemoryLayout<sa_family_t>.size) else { return .other }
        switch Int32(storage.ss_family) {
        case AF_INET: return .ipv4
        case AF_INET6: return .ipv6
        case AF_UNIX: return .unix
        default: return .other
        }
    }

    /// The number for socket(2).
    package var domain: Int32 { Int32(storage.ss_family) }

    package var port: UInt16 { withUnsafePointer(to: storage) { shim_port($0) } }

    package var ipv4: UInt32 { withUnsafePointer(to: storage) { shim_in_address($0) } }

    package var ipv6: (high: UInt64, low: UInt64, scope: UInt32) {
        withUnsafePointer(to: storage) {
            (shim_in6_high($0), shim_in6_low($0), shim_in6_scope($0))
        }
    }

    /// Whether it stands for all addresses of the host.
    package var isWildcard: Bool {
        switch family {
        case .ipv4: ipv4 == 0
        case .ipv6: ipv6.high == 0 && ipv6.low == 0
        case .unix, .other: false
        }
    }

    /// The name of a Unix address: nil where the socket has none.
    package var unix: (name: [UInt8], abstract: Bool)? {
        let head = MemoryLayout<sa_family_t>.size
        let count = Int(length) - head
        guard family == .unix, count > 0 else { return nil }
        return withUnsafePointer(to: storage) { storage in
            let path = UnsafeBufferPointer(start: shim_un_path(storage), count: min(count, 108))
            if path[0] == 0 { return (Array(path.dropFirst()), true) }
            return (Array(path.prefix { $0 != 0 }), false)
        }
    }

    /// The interface index of a name such as `eth0` or of a number such as `3`; nil if there is none.
    package static func interfaceIndex(of zone: String) -> UInt32? {
        if let number = UInt32(zone) { return number }
        let index = if_nametoindex(zone)
        return index == 0 ? nil : index
    }

    /// The name of an interface index, or its number where it is gone.
    package static func interfaceName(of index: UInt32) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(IF_NAMESIZE)) { buffer in
            guard let base = buffer.baseAddress, let name = if_indextoname(index, base) else {
                return String(index)
            }
            return String(cString: name)
        }
    }
}

extension SocketAddress {
    /// An IP address and port in 24 bytes, for those who keep one per connection.
    package struct Compact: Hashable, Sendable {
        package let high: UInt64
        package let low: UInt64
        package let scope: UInt32
        package let port: UInt16
        package let family: Family

        /// Nil for what is no IP address.
        init?(_ storage: UnsafePointer<sockaddr_storage>) {
            switch Int32(storage.pointee.ss_family) {
            case AF_INET:
                (high, low, scope) = (0, UInt64(shim_in_address(storage)), 0)
                family = .ipv4
            case AF_INET6:
                (high, low) = (shim_in6_high(storage), shim_in6_low(storage))
                scope = shim_in6_scope(storage)
                family = .ipv6
            default: return nil
            }
            port = shim_port(storage)
        }

        /// Three words rather than five fields: listeners hash one of these per datagram.
        package func hash(into hasher: inout Hasher) {
            hasher.combine(high)
            hasher.combine(low)
            hasher.combine(UInt64(scope) << 24 | UInt64(port) << 8 | UInt64(family.rawValue))
        }
    }

    /// Nil for what is no IP address.
    package var compact: Compact? { withUnsafePointer(to: storage) { Compact($0) } }

    package init(_ compact: Compact) {
        if compact.family == .ipv4 {
            self.init(ipv4: UInt32(truncatingIfNeeded: compact.low), port: compact.port)
        } else {
            self.init(
                ipv6High: compact.high, low: compact.low, scope: compact.scope, port: compact.port)
        }
    }
}

extension SocketAddress: Hashable {
    package static func == (left: SocketAddress, right: SocketAddress) -> Bool {
        left.withBytes { left in right.withBytes { right in left.elementsEqual(right) } }
    }

    package func hash(into hasher: inout Hasher) {
        withBytes { hasher.combine(bytes: $0) }
    }

    private func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeBytes(of: storage) {
            body(UnsafeRawBufferPointer(rebasing: $0.prefix(Int(length))))
        }
    }
}
