/// One end of a connection: a host and a port, or a Unix domain socket.
public enum Endpoint: Hashable, Sendable, CustomStringConvertible {
    /// A port of a host.
    case hostPort(host: Host, port: UInt16)
    /// A Unix domain socket with a path in the file system.
    case unix(String)
    /// A Unix domain socket with a name in Linux's abstract namespace, unix(7).
    case abstract(String)

    /// This port of every local address, of IPv6 and IPv4: for listeners.
    public static func port(_ port: UInt16) -> Endpoint {
        .hostPort(host: .ipv6(.any), port: port)
    }

    /// The host, unless this is a Unix domain socket.
    public var host: Host? {
        if case .hostPort(let host, _) = self { host } else { nil }
    }

    /// The port, unless this is a Unix domain socket.
    public var port: UInt16? {
        if case .hostPort(_, let port) = self { port } else { nil }
    }

    /// With an IPv4-mapped IPv6 address replaced by the IPv4 address in it.
    public var normalized: Endpoint {
        guard case .hostPort(let host, let port) = self else { return self }
        return .hostPort(host: host.normalized, port: port)
    }

    /// The text that ``init(parsing:)`` reads as this endpoint.
    ///
    /// A relative path that would be read as something else (`@name`, `80`) gets a `./`.
    public var description: String {
        switch self {
        case .hostPort(.ipv6(let address), let port): "[\(address)]:\(port)"
        case .hostPort(let host, let port): "\(host):\(port)"
        case .unix(let path):
            (path.utf8.first == UInt8(ascii: "@") || path.isDecimal ? "unix:./" : "unix:") + path
        case .abstract(let name): "unix:@\(name)"
        }
    }
}
