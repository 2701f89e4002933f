internal import TowpathReactor

/// Who a UDP listener's connection talks with, and from which of the host's addresses.
final class DatagramPeer: Sendable {
    struct Key: Hashable, Sendable {
        let remote: SocketAddress.Compact
        let local: LocalAddress?

        /// The local address is one of few, and not the peer's to choose.
        func hash(into hasher: inout Hasher) { remote.hash(into: &hasher) }
    }

    let hub: DatagramHub
    let key: Key
    let route: DatagramRoute
    let path: Datagram.Path

    init(hub: DatagramHub, key: Key, bound: SocketAddress) {
        self.hub = hub
        self.key = key
        let remote = SocketAddress(key.remote)
        // A group's address is nobody's to send from: the kernel chooses then.
        let isUnicast = key.local.map { !$0.isMulticast } ?? false
        route = DatagramRoute(remote: remote, local: isUnicast ? key.local : nil)
        path = Datagram.Path(
            remote: Endpoint(remote),
            local: Endpoint(key.local?.address(port: bound.port) ?? bound))
    }
}
