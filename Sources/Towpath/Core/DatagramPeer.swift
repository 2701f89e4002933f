internal import TowpathReactor

/// Who a UDP listener's connection talks with, and from which of the host's addresses.
final class DatagramPeer: Sendable {
    struct Key: Hashable, Sendable {
        let remote: SocketAddress.Compact
        let local: LocalAddress?
    }

    let hub: DatagramHub
    let key: Key
    let route: DatagramRoute
    let remoteEndpoint: Endpoint?
    let localEndpoint: Endpoint?

    init(hub: DatagramHub, key: Key, localPort: UInt16) {
        self.hub = hub
        self.key = key
        let remote = SocketAddress(key.remote)
        route = DatagramRoute(remote: remote, local: key.local)
        remoteEndpoint = Endpoint(remote)
        localEndpoint = key.local.flatMap { Endpoint($0.address(port: localPort)) }
    }
}
