import Glibc
import Testing
import Towpath

extension Endpoint {
    /// A port of an address.
    static func udp(_ address: String, _ port: UInt16 = 0) -> Endpoint {
        do { return .hostPort(host: Host(try IPAddress(parsing: address)), port: port) } catch {
            Issue.record("\(address): \(error)")
            return .port(port)
        }
    }

    static func udp4(_ port: UInt16 = 0) -> Endpoint { .udp("127.0.0.1", port) }

    static func udp6(_ port: UInt16 = 0) -> Endpoint { .udp("::1", port) }

    static func named(_ name: String, _ port: UInt16) -> Endpoint {
        .hostPort(host: .name(name), port: port)
    }

    var domain: Int32 {
        switch self {
        case .hostPort(.ipv6, _): AF_INET6
        case .hostPort: AF_INET
        case .unix, .abstract: AF_UNIX
        }
    }

    /// The C library's form of an address; of a path for Unix.
    func withSocketAddress<Result>(
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var storage = sockaddr_storage()
        let length: Int
        switch self {
        case .hostPort(.ipv6(let address), let port):
            var name = sockaddr_in6()
            name.sin6_family = sa_family_t(AF_INET6)
            name.sin6_port = port.bigEndian
            withUnsafeMutableBytes(of: &name.sin6_addr) { $0.copyBytes(from: address.bytes) }
            name.sin6_scope_id = address.zone.map { if_nametoindex($0) } ?? 0
            length = MemoryLayout<sockaddr_in6>.size
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: name, as: sockaddr_in6.self) }
        case .hostPort(let host, let port):
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            if case .ipv4(let address) = host { name.sin_addr.s_addr = address.rawValue.bigEndian }
            length = MemoryLayout<sockaddr_in>.size
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: name, as: sockaddr_in.self) }
        case .unix(let path), .abstract(let path):
            storage.ss_family = sa_family_t(AF_UNIX)
            length = 2 + path.utf8.count + 1
            withUnsafeMutableBytes(of: &storage) { $0[2...].copyBytes(from: path.utf8) }
        }
        return storage.asSocketAddress { body($0, socklen_t(length)) }
    }

    /// As the kernel wrote it: nothing is normalized here.
    init?(_ storage: sockaddr_storage) {
        switch Int32(storage.ss_family) {
        case AF_INET:
            let name = withUnsafeBytes(of: storage) { $0.load(as: sockaddr_in.self) }
            let address = IPv4Address(rawValue: UInt32(bigEndian: name.sin_addr.s_addr))
            self = .hostPort(host: .ipv4(address), port: UInt16(bigEndian: name.sin_port))
        case AF_INET6:
            let name = withUnsafeBytes(of: storage) { $0.load(as: sockaddr_in6.self) }
            let bytes = withUnsafeBytes(of: name.sin6_addr) { Array($0) }
            guard let address = IPv6Address(bytes: bytes) else { return nil }
            self = .hostPort(host: .ipv6(address), port: UInt16(bigEndian: name.sin6_port))
        case AF_UNIX:
            let path = withUnsafeBytes(of: storage) { Array($0[2...].prefix { $0 != 0 }) }
            self = .unix(String(decoding: path, as: UTF8.self))
        default: return nil
        }
    }
}

extension sockaddr_storage {
    mutating func asSocketAddress<Result>(
        _ body: (UnsafeMutablePointer<sockaddr>) -> Result
    ) -> Result {
        withUnsafeMutablePointer(to: &self) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body)
        }
    }
}
