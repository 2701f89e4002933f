internal import TowpathReactor
internal import TowpathWire

/// Endpoints in the kernel's form and back. What comes from the kernel is normalized: a peer of a
/// dual-stack socket has its plain IPv4 address (BR-014).
extension SocketAddress {
    /// Nil if the zone names no interface of this host.
    init?(_ address: IPAddress, port: UInt16) {
        switch address {
        case .v4(let address):
            self.init(ipv4: address.rawValue, port: port)
        case .v6(let address):
            var scope: UInt32 = 0
            if let zone = address.zone {
                guard let index = SocketAddress.interfaceIndex(of: zone) else { return nil }
                scope = index
            }
            self.init(ipv6High: address.high, low: address.low, scope: scope, port: port)
        }
    }

    /// Nil for what has no IP address.
    var ipAddress: IPAddress? {
        switch family {
        case .ipv4:
            return .v4(IPv4Address(rawValue: ipv4))
        case .ipv6:
            let (high, low, scope) = ipv6
            let zone = scope == 0 ? nil : SocketAddress.interfaceName(of: scope)
            return IPAddress.v6(IPv6Address(high: high, low: low, zone: zone)).normalized
        case .unix, .other:
            return nil
        }
    }
}

extension Endpoint {
    /// Nil for an unnamed Unix socket.
    init?(_ address: SocketAddress) {
        if let ip = address.ipAddress {
            self = .hostPort(host: Host(ip), port: address.port)
        } else if let unix = address.unix {
            let name = String(decoding: unix.name, as: UTF8.self)
            self = unix.abstract ? .abstract(name) : .unix(name)
        } else {
            return nil
        }
    }
}

extension NetworkError {
    init(_ error: AddressError) {
        self.init(.invalidEndpoint, .setup, error.message)
    }
}

extension SocketAddress {
    /// The address of an endpoint that needs no resolver; nil for a host name.
    init?(_ endpoint: Endpoint) {
        switch endpoint {
        case .hostPort(let host, let port):
            guard let address = host.address else { return nil }
            self.init(address, port: port)
        case .unix(let path):
            self.init(unix: Array(path.utf8), abstract: false)
        case .abstract(let name):
            self.init(unix: Array(name.utf8), abstract: true)
        }
    }
}
