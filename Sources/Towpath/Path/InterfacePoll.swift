internal import TowpathReactor
internal import TowpathWire

/// What can be known without netlink: the interfaces by getifaddrs(3), and the way to a destination by
/// connecting a datagram socket, which sends nothing.
enum InterfacePoll {
    static func table() -> NetworkTable {
        var table = NetworkTable()
        for entry in (try? InterfaceList())?.entries ?? [] {
            var link = LinkMessage()
            link.index = entry.index
            link.name = entry.name
            link.hardwareType = 1
            link.flags = LinkMessage.Flags(rawValue: entry.flags)
            // Whether there is a carrier, getifaddrs(3) tells by this flag.
            if link.flags.contains(.running) { link.flags.insert(.lowerUp) }
            _ = table.apply(.newLink(link))
            guard let address = entry.address?.ipAddress else { continue }
            var message = AddressMessage()
            message.index = entry.index
            message.address = address
            if case .v6(let six) = address, six.isLinkLocal { message.scope = 253 }
            _ = table.apply(.newAddress(message))
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
