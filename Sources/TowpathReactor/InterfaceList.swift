internal import CTowpathLinux

/// The interfaces as getifaddrs(3) lists them: all there is where netlink is not to be had.
package struct InterfaceList: Sendable {
    package struct Entry: Sendable {
        package let name: String
        package let index: UInt32
        package let flags: UInt32
        package let address: SocketAddress?
    }

    package let entries: [Entry]

    package init() throws(SystemError) {
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { throw SystemError(shim_errno(), "getifaddrs") }
        defer { freeifaddrs(first) }
        var entries: [Entry] = []
        var next = first
        while let entry = next?.pointee {
            next = entry.ifa_next
            guard let name = entry.ifa_name.map({ String(cString: $0) }) else { continue }
            entries.append(
                Entry(
                    name: name, index: if_nametoindex(name), flags: entry.ifa_flags,
                    address: entry.ifa_addr.flatMap { Self.address($0) }))
        }
        self.entries = entries
    }

    private static func address(_ pointer: UnsafeMutablePointer<sockaddr>) -> SocketAddress? {
        let size: Int
        switch Int32(pointer.pointee.sa_family) {
        case AF_INET: size = MemoryLayout<sockaddr_in>.size
        case AF_INET6: size = MemoryLayout<sockaddr_in6>.size
        default: return nil
        }
        var address = SocketAddress()
        withUnsafeMutableBytes(of: &address.storage) {
            $0.copyMemory(from: UnsafeRawBufferPointer(start: pointer, count: size))
        }
        address.length = socklen_t(size)
        return address
    }
}

/// Waiting on the blocking pool's threads.
package enum BlockingPause {
    package static func milliseconds(_ count: Int32) { _ = poll(nil, 0, count) }
}
