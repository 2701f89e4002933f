internal import CTowpathLinux

/// Sockets of NETLINK_ROUTE: netlink(7), rtnetlink(7).
extension Descriptor {
    /// A group of the kernel's announcements, RTNLGRP_* of linux/rtnetlink.h.
    package enum NetlinkGroup: Int32, CaseIterable, Sendable {
        case links = 1
        case neighbors = 3
        case ipv4Addresses = 5
        case ipv4Routes = 7
        case ipv4Rules = 8
        case ipv6Addresses = 9
        case ipv6Routes = 11
        case ipv6Rules = 19
        case nexthops = 32
    }

    /// A socket that hears the groups; without any, one to ask with.
    ///
    /// - Parameters:
    ///   - receiveBuffer: What to ask the kernel to keep unread, in bytes; the host bounds it.
    ///   - namespace: The file of a network namespace, such as `/run/netns/NAME`; nil for the
    ///     caller's. A socket stays in the namespace in which it was made.
    package static func netlink(
        groups: [NetlinkGroup], receiveBuffer: Int32? = nil, namespace: String? = nil
    ) throws(SystemError) -> Descriptor {
        let socket = try inNamespace(namespace) { () throws(SystemError) in
            Int32(try check(shim_netlink_socket(), "socket(AF_NETLINK)"))
        }
        let descriptor = Descriptor(owning: socket)
        try check(shim_netlink_bind(socket), "bind")
        // Both are missing in old kernels, which tell and filter less.
        _ = shim_netlink_option(socket, SHIM_NETLINK_EXT_ACK, 1)
        if groups.isEmpty { _ = shim_netlink_option(socket, SHIM_NETLINK_GET_STRICT_CHK, 1) }
        if let receiveBuffer { try? descriptor.set(.receiveBuffer, to: receiveBuffer) }
        for group in groups {
            let result = shim_netlink_option(socket, SHIM_NETLINK_ADD_MEMBERSHIP, group.rawValue)
            // Nexthop objects came with Linux 5.3.
            if group == .nexthops, result == -Int(EINVAL) { continue }
            try check(result, "setsockopt(NETLINK_ADD_MEMBERSHIP)")
        }
        return descriptor
    }

    /// Only a thread enters a namespace, so that one of its own makes the socket.
    private static func inNamespace(
        _ path: String?, _ body: @escaping @Sendable () throws(SystemError) -> Int32
    ) throws(SystemError) -> Int32 {
        guard let path else { return try body() }
        let result = Locked<Result<Int32, SystemError>>(.failure(SystemError(ECANCELED, "setns")))
        let box = NamespaceResult(result: result)
        let thread = try Thread.start(name: "towpath-netns") {
            box.set(
                Result { () throws(SystemError) in
                    let file = Descriptor(owning: Int32(try check(shim_open_read(path), "open")))
                    try check(shim_enter_network_namespace(file.number), "setns")
                    return try body()
                })
        }
        pthread_join(thread, nil)
        return try box.get()
    }

    private final class NamespaceResult: Sendable {
        private let result: Locked<Result<Int32, SystemError>>

        init(result: consuming Locked<Result<Int32, SystemError>>) { self.result = result }

        func set(_ new: Result<Int32, SystemError>) { result.withLock { $0 = new } }
        func get() throws(SystemError) -> Int32 { try result.withLock { $0 }.get() }
    }

    package func sendNetlink(_ bytes: [UInt8]) throws(SystemError) {
        try check(
            bytes.withUnsafeBytes { shim_netlink_send(number, $0.baseAddress, $0.count) }, "sendto")
    }

    /// One datagram of the kernel into the buffer; `.done(0)` for one that somebody else sent.
    /// `.failed(ENOBUFS)` says that announcements were lost.
    package func receiveNetlink(into buffer: inout [UInt8]) -> Transfer {
        var isKernel: Int32 = 0
        let result = buffer.withUnsafeMutableBytes {
            shim_netlink_receive(number, $0.baseAddress, $0.count, &isKernel)
        }
        return result > 0 && isKernel == 0 ? .done(0) : Transfer(result)
    }
}
