import Towpath

/// The listeners of one command line.
final class EchoService: Sendable {
    let statistics = Statistics()
    private let streams: [Listener<TCP>]
    private let secure: [Listener<TLS>]
    private let datagrams: [Listener<UDP>]
    private let webSockets: [Listener<WebSocket>]
    /// The first so many of those are plain.
    private let plainWebSocketCount: Int
    /// The pin of a key that was made for this run.
    let pin: Pin?
    private let options: Options

    /// Binds all listeners; throws the first error, and then none is left.
    init(_ options: Options) async throws {
        self.options = options
        let identity = try Self.identity(options)
        pin = options.isSelfSigned ? identity?.pin : nil
        var streams: [Listener<TCP>] = []
        var secure: [Listener<TLS>] = []
        var datagrams: [Listener<UDP>] = []
        var webSockets: [Listener<WebSocket>] = []
        var secureWebSockets: [Listener<WebSocket>] = []
        for listening in options.listeners {
            switch listening {
            case .stream(let endpoint):
                streams.append(try await Listener(on: endpoint) { TCP() })
            case .secure(let endpoint):
                guard let identity else { continue }
                secure.append(try await Listener(on: endpoint) { TLS(identity: identity) })
            case .webSocket(let endpoint):
                webSockets.append(try await Listener(on: endpoint) { WebSocket() })
            case .secureWebSocket(let endpoint):
                guard let identity else { continue }
                secureWebSockets.append(
                    try await Listener(on: endpoint) { WebSocket { TLS(identity: identity) } })
            case .datagrams(let endpoint):
                datagrams.append(
                    try await Listener(on: endpoint) {
                        UDP().idleTimeout(options.idleTimeout ?? .seconds(60))
                    })
            }
        }
        self.streams = streams
        self.secure = secure
        self.datagrams = datagrams
        self.webSockets = webSockets + secureWebSockets
        plainWebSocketCount = webSockets.count
        for listener in streams { prepare(listener) }
        for listener in secure { prepare(listener) }
        for listener in datagrams { prepare(listener) }
        for listener in self.webSockets { prepare(listener) }
    }

    private static func identity(_ options: Options) throws(CertificateError) -> Identity? {
        if options.isSelfSigned { return try .selfSigned() }
        guard let certificate = options.certificateFile, let key = options.keyFile else {
            return nil
        }
        return try Identity(certificateFile: certificate, keyFile: key)
    }

    private func prepare<Top>(_ listener: Listener<Top>) {
        if let limit = options.connectionLimit { listener.connectionLimit(limit) }
        if !options.isQuiet {
            listener.onEvent { event in Console.note("\(listener.localEndpoint): \(event)") }
        }
    }

    /// A line for each address.
    var boundAddresses: [String] {
        streams.map { listener in
            let isUnix = listener.localEndpoint.port == nil
            return isUnix
                ? "listening on \(listener.localEndpoint)"
                : "listening on tcp \(listener.localEndpoint)"
        } + secure.map { "listening on tls \($0.localEndpoint)" }
            + datagrams.map { "listening on udp \($0.localEndpoint)" }
            + webSockets.enumerated().map { index, listener in
                let name = index < plainWebSocketCount ? "ws" : "wss"
                return "listening on \(name) \(listener.localEndpoint)"
            }
    }

    /// Serves until ``drain()`` has come to its end.
    func run() async throws {
        try await withThrowingTaskGroup { group in
            for listener in streams {
                group.addTask { try await listener.run { try await self.echo($0) } }
            }
            for listener in secure {
                group.addTask { try await listener.run { try await self.echo($0) } }
            }
            for listener in datagrams {
                group.addTask { try await listener.run { try await self.echo($0) } }
            }
            for listener in webSockets {
                group.addTask { try await listener.run { try await self.echo($0) } }
            }
            try await group.waitForAll()
        }
    }

    func drain() {
        for listener in streams { listener.drain(within: .seconds(5)) }
        for listener in secure { listener.drain(within: .seconds(5)) }
        for listener in datagrams { listener.drain(within: .seconds(5)) }
        for listener in webSockets { listener.drain(within: .seconds(5)) }
    }

    private func echo<Top: StreamProtocol>(_ connection: Connection<Top>) async throws {
        statistics.connectionOpened()
        defer { statistics.connectionClosed() }
        let chunks = connection.chunks(idleTimeout: options.idleTimeout, untilDrain: true)
        do {
            for try await chunk in chunks {
                statistics.didReceive(chunk.count)
                try await connection.send(chunk)
                statistics.didSend(chunk.count)
            }
        } catch let error as NetworkError where error.code == .timedOut && error.stage == .receive {
            // Silent for the idle timeout: closed in good order.
        }
    }

    private func echo(_ connection: Connection<WebSocket>) async throws {
        statistics.connectionOpened()
        defer { statistics.connectionClosed() }
        let messages = connection.messages(idleTimeout: options.idleTimeout, untilDrain: true)
        do {
            for try await message in messages {
                statistics.didReceive(message.byteCount)
                try await connection.send(message)
                statistics.didSend(message.byteCount)
            }
        } catch let error as NetworkError where error.code == .timedOut && error.stage == .receive {
            // As above.
        }
    }

    private func echo(_ connection: Connection<UDP>) async throws {
        statistics.connectionOpened()
        defer { statistics.connectionClosed() }
        for try await datagram in connection.messagesUntilDrain {
            statistics.didReceive(datagram.bytes.count)
            try await connection.send(datagram.bytes)
            statistics.didSend(datagram.bytes.count)
        }
    }
}
