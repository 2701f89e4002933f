internal import CTowpathLinux

/// The interfaces as netdevice(7) and /proc/net tell: all there is where netlink is not to be had.
/// getifaddrs(3) is no way around, since it asks by netlink itself.
package struct InterfaceList: Sendable {
    package struct Entry: Sendable {
        package let name: String
        package let index: UInt32
        package let flags: UInt32
        package let mtu: UInt32
        package var addresses: [Address] = []
    }

    package struct Address: Sendable, Equatable {
        package let address: SocketAddress
        package var prefixLength: UInt8 = 0
        /// IFA_F_* and RT_SCOPE_* of linux/if_addr.h and linux/rtnetlink.h.
        package var flags: UInt8 = 0
        package var scope: UInt8 = 0
    }

    package let entries: [Entry]

    package init() throws(SystemError) {
        let socket = try Descriptor.socket(.ipv4, .datagram)
        let ipv4 = try Self.ipv4Addresses(socket)
        let ipv6 = Self.ipv6Addresses(in: Self.text("/proc/self/net/if_inet6"))
        entries = Self.names(in: Self.text("/proc/self/net/dev")).compactMap { name in
            var found = shim_interface()
            // It may have gone meanwhile.
            guard shim_interface(socket.number, name, &found) == 0 else { return nil }
            return Entry(
                name: name, index: found.index, flags: found.flags, mtu: found.mtu,
                addresses: (ipv4[name] ?? []) + (ipv6[name] ?? []))
        }
    }

    private static func text(_ path: String) -> String {
        String(decoding: FileLinks.contents(of: path) ?? [], as: UTF8.self)
    }

    private static func ipv4Addresses(
        _ socket: borrowing Descriptor
    ) throws(SystemError) -> [String: [Address]] {
        var list = [shim_ipv4_address](repeating: shim_ipv4_address(), count: 512)
        let count = try check(
            shim_ipv4_addresses(socket.number, &list, list.count), "ioctl(SIOCGIFCONF)")
        var addresses: [String: [Address]] = [:]
        for entry in list.prefix(count) {
            let label = withUnsafeBytes(of: entry.label) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            // An address may be labelled `eth0:1`.
            let name = String(label.prefix { $0 != ":" })
            let address = SocketAddress(ipv4: UInt32(bigEndian: entry.address), port: 0)
            addresses[name, default: []].append(Address(address: address))
        }
        return addresses
    }

    /// The names in /proc/net/dev: two lines of heading, then `  eth0: 1234 ...`.
    package static func names(in devices: String) -> [String] {
        devices.split(separator: "\n").dropFirst(2).compactMap { line in
            line.firstIndex(of: ":").map { String(line[..<$0].drop { $0 == " " }) }
        }
    }

    /// Of the link, the host and the site: what linux/rtnetlink.h calls those of linux/ipv6.h.
    private static let routeScopes: [UInt8: UInt8] = [0x20: 253, 0x10: 254, 0x40: 200]

    /// The lines of /proc/net/if_inet6: address, interface, prefix, scope, flags, all hexadecimal, and
    /// the name.
    package static func ipv6Addresses(in list: String) -> [String: [Address]] {
        var addresses: [String: [Address]] = [:]
        for line in list.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 6, words[0].utf8.count == 32,
                let high = UInt64(words[0].prefix(16), radix: 16),
                let low = UInt64(words[0].suffix(16), radix: 16),
                let prefix = UInt8(words[2], radix: 16),
                let scope = UInt8(words[3], radix: 16),
                let flags = UInt8(words[4].suffix(2), radix: 16)
            else { continue }
            addresses[String(words[5]), default: []].append(
                Address(
                    address: SocketAddress(ipv6High: high, low: low, scope: 0, port: 0),
                    prefixLength: prefix, flags: flags,
                    scope: Self.routeScopes[scope] ?? 0))
        }
        return addresses
    }
}
