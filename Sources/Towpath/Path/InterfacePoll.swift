internal import TowpathReactor
internal import TowpathWire

/// What can be known without netlink: the interfaces by netdevice(7) and /proc/net, and the way to a
/// destination by connecting a datagram socket, which sends nothing.
enum InterfacePoll {
    static func table() -> NetworkTable {
        var table = NetworkTable()
        for entry in (try? InterfaceList())?.entries ?? [] {
            var link = LinkMessage()
            link.index = entry.index
            link.name = entry.name
            link.hardwareType = 1
            link.mtu = entry.mtu
            link.flags = LinkMessage.Flags(rawValue: entry.flags)
            // netdevice(7) tells by this flag whether there is a carrier.
            if link.flags.contains(.running) { link.flags.insert(.lowerUp) }
            _ = table.apply(.newLink(link))
            for address in entry.addresses {
                var message = AddressMessage()
                message.index = entry.index
                message.address = address.address.ipAddress
                message.prefixLength = address.prefixLength
                message.scope = address.scope
                message.flags = AddressMessage.Flags(rawValue: UInt32(address.flags))
                _ = table.apply(.newAddress(message))
            }
        }
        return table
    }

    static func ask(_ query: RouteQuery) -> PathEvaluator.Answer {
        guard let target = SocketAddress(query.destination, port: 9) else {
            return .failed(errno: 0)
        }
        do throws(SystemError) {
            let socket = try Descriptor.socket(target.family, .datagram)
            if let interface = query.interface {
                try socket.bindToInterface(SocketAddress.interfaceName(of: interface))
            }
            if case .failed(let code) = socket.connect(to: target) { return .failed(errno: code) }
            guard let source = try socket.localAddress().ipAddress else {
                return .failed(errno: 0)
            }
            return .route(route(from: source, query.interface))
        } catch {
            return .failed(errno: error.code)
        }
    }

    private static func route(from source: IPAddress, _ interface: UInt32?) -> RouteMessage {
        var hop = RouteMessage.Hop()
        let owner = table().addresses.values.first { $0.address == source }?.index
        hop.interface = interface ?? owner
        var route = RouteMessage()
        route.family = source.family
        route.preferredSource = source
        route.hops = [hop]
        return route
    }
}
