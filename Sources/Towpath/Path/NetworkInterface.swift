internal import TowpathWire

/// An interface of this host, whether it leads anywhere or not.
public struct NetworkInterface: Hashable, Sendable {
    /// Such as `eth0`.
    public let name: String
    /// The kernel's number.
    public let index: UInt32
    /// What kind of network it belongs to.
    public let type: InterfaceType
    /// The largest packet, in bytes.
    public let mtu: Int
    /// Whether it is switched on.
    public let isUp: Bool
    /// Whether the cable is in, or what stands for that.
    public let hasCarrier: Bool
    /// Whether packets can leave through it: it is up, has a carrier, and is not dormant (RFC 2863).
    public let isUsable: Bool
    /// The addresses that packets can leave from.
    public let addresses: [IPAddress]
}

extension PathMonitor {
    /// All interfaces, in the order of their numbers, as far as the kernel has told by now.
    public var networkInterfaces: [NetworkInterface] {
        guard let observer = try? openedObserver() else { return [] }
        let table = observer.table
        let evaluator = PathEvaluator(
            table: table, defaults: [], types: observer.knownTypes, ask: { _ in .failed(errno: 0) })
        return table.links.keys.sorted().compactMap { index in
            table.link(index).map { link in
                NetworkInterface(
                    name: link.name, index: index, type: evaluator.type(of: index),
                    mtu: Int(link.mtu), isUp: link.flags.contains(.up),
                    hasCarrier: link.flags.contains(.lowerUp), isUsable: link.isUsable,
                    addresses: table.addresses(of: index).filter(\.isUsable)
                        .compactMap(\.address))
            }
        }
    }
}
