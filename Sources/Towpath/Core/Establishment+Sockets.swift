internal import TowpathReactor
internal import TowpathWire

/// The sockets of attempts: made, set up and bound, not connected yet.
extension Establishment {
    func socket(for target: SocketAddress) throws(NetworkError) -> Descriptor {
        let setup = SocketSetup(parameters: plan.parameters)
        try setup.checkConnection()
        let socket: Descriptor
        switch plan.transport {
        case .tcp(let tcp):
            socket = try Self.socket(target.family, .stream, multipath: tcp.multipath)
            try setup.apply(socket, target.family)
            if target.family == .unix {
                try setup.refuseOptionsOfTCP(tcp)
            } else {
                try setup.apply(tcp, to: socket, isListener: false)
            }
        case .udp(let udp):
            socket = try Self.socket(target.family, .datagram, multipath: false)
            try setup.apply(socket, target.family)
            try setup.apply(udp, to: socket, target.family, answersFromMany: false)
        }
        try bind(socket, target.family)
        return socket
    }

    private static func socket(
        _ family: SocketAddress.Family, _ type: Descriptor.SocketType, multipath: Bool
    ) throws(NetworkError) -> Descriptor {
        do throws(SystemError) {
            return try .socket(family, type, multipath: multipath && family != .unix)
        } catch {
            throw NetworkError(error, .connect, "no socket")
        }
    }

    private func bind(
        _ socket: borrowing Descriptor, _ family: SocketAddress.Family
    ) throws(NetworkError) {
        guard let local = plan.parameters.localEndpoint else { return }
        do throws(SystemError) {
            guard let address = SocketAddress(local), address.family == family else {
                throw SystemError(SystemError.wrongFamily, "bind")
            }
            // The port is chosen when the peer is known, so that many connections can share one.
            if family != .unix, address.port == 0 { try socket.set(.ipBindAddressNoPort, to: 1) }
            try socket.bind(to: address)
        } catch {
            throw NetworkError(error, .connect, "cannot send from \(local)")
        }
    }
}
