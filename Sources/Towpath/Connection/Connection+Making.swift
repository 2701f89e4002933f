internal import TowpathReactor

/// Connections that are not opened to an endpoint: adopted descriptors and joined pairs.
extension Connection {
    /// Takes over a connected socket that something else made.
    ///
    /// The descriptor belongs to the connection from then on, also if this throws; it becomes
    /// non-blocking and close-on-exec. Throws ``NetworkError/Code/invalidEndpoint`` if it is no
    /// connected socket of the stack's type. The stack's options are not applied.
    public convenience init(
        adopting descriptor: Int32, @ProtocolStackBuilder<Top> _ stack: () -> Top
    ) throws(NetworkError) {
        let stack = stack().stack
        guard stack.tls == nil, stack.webSocket == nil else {
            _ = Descriptor(owning: descriptor)
            throw NetworkError(
                .notSupported, .setup,
                "a socket that is taken over carries TCP or UDP; make it secure with upgrade(to:)")
        }
        do throws(SystemError) {
            let socket = try Descriptor(adopting: descriptor)
            guard try socket.isType(stack.transport.socketType) else {
                throw SystemError(SystemError.wrongType, "getsockopt(SO_TYPE)")
            }
            try self.init(socket, stack)
        } catch {
            throw NetworkError(
                .invalidEndpoint, .setup,
                "descriptor \(descriptor) is no connected socket of the stack's type",
                cause: .system(errno: error.code, call: error.call))
        }
    }

    convenience init(
        _ socket: consuming Descriptor, _ stack: ProtocolStack
    ) throws(SystemError) {
        let remote = try socket.remoteAddress()
        let kind: TransportKind =
            switch (stack.transport, remote.family) {
            case (.udp, _): .datagram
            case (.tcp, .unix): .unix
            case (.tcp, _): .tcp
            }
        self.init(
            try ConnectionCore(
                loop: EventLoopGroup.shared.nearest(), kind: kind, descriptor: socket,
                remote: remote.compact), framing: stack.makeFraming?())
    }

    static func makePair(
        _ stack: ProtocolStack
    ) throws(NetworkError) -> (Connection, Connection) {
        do throws(SystemError) {
            let (left, right) = try Descriptor.pair(stack.transport.socketType)
            let rightSocket = Descriptor(owning: right)
            let first = try Connection(Descriptor(owning: left), stack)
            return (first, try Connection(rightSocket, stack))
        } catch {
            throw NetworkError(error, .setup, "no socket pair")
        }
    }
}

extension Connection where Top == TCP {
    /// Two streams joined with each other inside the process (socketpair(2)), for tests and for tasks
    /// that talk in bytes.
    public static func pair() throws(NetworkError) -> (Connection<TCP>, Connection<TCP>) {
        try makePair(TCP().stack)
    }
}

extension Connection where Top == UDP {
    /// Two datagram connections joined with each other inside the process (socketpair(2)). Unlike UDP
    /// they lose nothing and keep the order.
    public static func datagramPair() throws(NetworkError) -> (Connection<UDP>, Connection<UDP>) {
        try makePair(UDP().stack)
    }
}
