import TowpathReactor

extension DatagramBatch.Header {
    /// Who sent it, as an address to answer to.
    var sender: SocketAddress? { remote.map { SocketAddress($0) } }
}

extension DatagramRoute {
    /// The way back to a sender with an IP address.
    convenience init?(remote: SocketAddress?, local: LocalAddress?) {
        guard let remote else { return nil }
        self.init(remote: remote, local: local)
    }
}
