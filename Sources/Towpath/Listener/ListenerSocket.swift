internal import TowpathReactor

/// The socket of a listener, bound and listening.
struct ListenerSocket: ~Copyable {
    let descriptor: Descriptor
    /// The file of a Unix listener, if it made one.
    let file: UnixSocketFile?
    let setup: SocketSetup

    static func bind(
        _ endpoint: Endpoint, _ parameters: Parameters, _ transport: ProtocolStack.Transport
    ) throws(NetworkError) -> ListenerSocket {
        guard let address = SocketAddress(endpoint) else {
            throw NetworkError(.invalidEndpoint, .listen, "\(endpoint): \(reason(endpoint))")
        }
        var makesFile = false
        if case .unix = endpoint { makesFile = true }
        let setup = SocketSetup(parameters: parameters)
        try setup.checkListener(address.family, transport.socketType, makesFile: makesFile)
        let socket = try make(address, parameters, transport)
        do throws(SystemError) {
            var file: UnixSocketFile?
            if case .unix(let path) = endpoint {
                file = try UnixSocketFile(
                    binding: socket, to: address, path: path, mode: parameters.unixSocketMode)
            } else {
                try socket.bind(to: address)
            }
            if case .tcp = transport { try socket.listen(backlog: setup.backlog) }
            return ListenerSocket(descriptor: socket, file: file, setup: setup)
        } catch {
            throw NetworkError(error, .listen, "cannot listen on \(endpoint)")
        }
    }

    /// Why an endpoint has no socket address.
    private static func reason(_ endpoint: Endpoint) -> String {
        switch endpoint {
        case .hostPort(.name, _): "a listener is bound to an address of this host, not to a name"
        case .hostPort: "no interface has this zone's name"
        case .unix, .abstract: "a Unix socket's name has 1 to 107 bytes"
        }
    }

    /// Their senders need not have a name to tell them apart by.
    private static var unixDatagrams: NetworkError {
        NetworkError(.notSupported, .listen, "Unix datagrams have no listener: use a connection")
    }

    private static func make(
        _ address: SocketAddress, _ parameters: Parameters, _ transport: ProtocolStack.Transport
    ) throws(NetworkError) -> Descriptor {
        let family = address.family
        var parameters = parameters
        let socket: Descriptor
        switch transport {
        case .tcp(let tcp):
            // Connections of an earlier run may linger in TIME-WAIT.
            if family != .unix { parameters.addressReuse = parameters.addressReuse ?? true }
            socket = try make(family, .stream, multipath: tcp.multipath)
        case .udp:
            guard family != .unix else { throw unixDatagrams }
            socket = try make(family, .datagram, multipath: false)
        }
        // Explicit, since net.ipv6.bindv6only decides otherwise.
        if family == .ipv6 {
            parameters.ipv6Only = parameters.ipv6Only ?? (parameters.ipVersion == .ipv6)
        }
        try apply(
            parameters, transport, to: socket, family, isWildcard: address.isWildcard)
        return socket
    }

    private static func make(
        _ family: SocketAddress.Family, _ type: Descriptor.SocketType, multipath: Bool
    ) throws(NetworkError) -> Descriptor {
        do throws(SystemError) {
            return try .socket(family, type, multipath: multipath && family != .unix)
        } catch {
            throw NetworkError(error, .listen, "no socket")
        }
    }

    private static func apply(
        _ parameters: Parameters, _ transport: ProtocolStack.Transport,
        to socket: borrowing Descriptor, _ family: SocketAddress.Family, isWildcard: Bool
    ) throws(NetworkError) {
        let setup = SocketSetup(parameters: parameters)
        try setup.apply(socket, family)
        switch transport {
        case .tcp(let tcp):
            if family == .unix {
                try setup.refuseOptionsOfTCP(tcp)
            } else {
                try setup.apply(tcp, to: socket, isListener: true)
            }
        case .udp(let udp):
            try setup.apply(udp, to: socket, family, answersFromMany: isWildcard)
        }
    }

    static func adopt(
        _ number: Int32, _ parameters: Parameters, _ transport: ProtocolStack.Transport
    ) throws(NetworkError) -> ListenerSocket {
        let socket = try adopt(number)
        let address: SocketAddress
        let isUsable: Bool
        do throws(SystemError) {
            address = try socket.localAddress()
            let isListening = try socket.get(.isListening) != 0
            isUsable =
                try socket.isType(transport.socketType)
                && (isListening || transport.socketType == .datagram)
        } catch {
            throw NetworkError(error, .listen, "descriptor \(number) is no socket")
        }
        guard isUsable else {
            throw NetworkError(
                .invalidEndpoint, .listen,
                "descriptor \(number) is no listening socket of the stack's type")
        }
        if case .udp = transport, address.family == .unix { throw unixDatagrams }
        let setup = SocketSetup(parameters: parameters)
        try setup.checkListener(address.family, transport.socketType, makesFile: false)
        try apply(
            parameters, transport, to: socket, address.family, isWildcard: address.isWildcard)
        return ListenerSocket(descriptor: socket, file: nil, setup: setup)
    }

    private static func adopt(_ number: Int32) throws(NetworkError) -> Descriptor {
        do throws(SystemError) { return try Descriptor(adopting: number) } catch {
            throw NetworkError(error, .listen, "descriptor \(number) cannot be used")
        }
    }
}

extension ProtocolStack.Transport {
    var socketType: Descriptor.SocketType {
        switch self {
        case .tcp: .stream
        case .udp: .datagram
        }
    }
}
