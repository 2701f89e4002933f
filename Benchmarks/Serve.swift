import Towpath

/// The server that is measured: prints `tcp PORT udp PORT` and serves until it is killed.
func serve(mode: String, identity files: [String]) async throws {
    switch mode {
    case "echo":
        let listener = try await streamListener()
        try await listener.run { connection in try await echoChunks(connection) }
    case "hop":
        // Off the loop: what a handler costs that runs where it may block.
        let listener = try await streamListener()
        try await listener.run(on: .concurrentExecutor) { connection in
            try await echoChunks(connection)
        }
    case "receive":
        let listener = try await streamListener()
        try await listener.run { connection in try await echoReceived(connection) }
    case "into":
        let listener = try await streamListener()
        try await listener.run { connection in try await echoIntoBuffer(connection) }
    case "udp":
        let listener = try await Listener(on: try Endpoint(parsing: "127.0.0.1:0")) { UDP() }
        emit("tcp 0 udp \(listener.port)")
        try await listener.run { connection in
            for try await datagram in connection.messages {
                try await connection.send(datagram.bytes)
            }
        }
    case "ws":
        let listener = try await messageListener(compression: .disabled)
        try await listener.run { connection in try await echoMessages(connection) }
    case "ws-deflate":
        let listener = try await messageListener(compression: .enabled)
        try await listener.run { connection in try await echoMessages(connection) }
    case "tls":
        let listener = try await secureListener(files)
        try await listener.run { connection in try await echoChunks(connection) }
    case "tls-receive":
        let listener = try await secureListener(files)
        try await listener.run { connection in try await echoReceived(connection) }
    case "tls-into":
        let listener = try await secureListener(files)
        try await listener.run { connection in try await echoIntoBuffer(connection) }
    default:
        throw Options.Usage(
            message: "serve what? echo, receive, into, hop, udp, ws or ws-deflate;"
                + " tls, tls-receive or tls-into with the files of a certificate and its key")
    }
}

private func streamListener() async throws -> Listener<TCP> {
    let listener = try await Listener(on: try Endpoint(parsing: "127.0.0.1:0")) { TCP() }
    emit("tcp \(listener.port) udp 0")
    return listener
}

private func secureListener(_ files: [String]) async throws -> Listener<TLS> {
    guard files.count == 2 else {
        throw Options.Usage(message: "TLS needs a certificate and its key")
    }
    let identity = try Identity(certificateFile: files[0], keyFile: files[1])
    let listener = try await Listener(on: try Endpoint(parsing: "127.0.0.1:0")) {
        TLS(identity: identity)
    }
    emit("tcp \(listener.port) udp 0")
    return listener
}

private func messageListener(
    compression: WebSocket.Compression
) async throws -> Listener<WebSocket> {
    let listener = try await Listener(on: try Endpoint(parsing: "127.0.0.1:0")) {
        WebSocket { TCP() }.compression(compression)
    }
    emit("tcp \(listener.port) udp 0")
    return listener
}

private func echoMessages(_ connection: Connection<WebSocket>) async throws {
    for try await message in connection.messages { try await connection.send(message) }
}

private func echoChunks<Top: StreamProtocol>(_ connection: Connection<Top>) async throws {
    for try await chunk in connection.chunks { try await connection.send(chunk) }
}

private func echoReceived<Top: StreamProtocol>(_ connection: Connection<Top>) async throws {
    while let bytes = try await connection.receive(atMost: 65_536) {
        try await connection.send(bytes)
    }
}

/// One buffer for as long as the connection lives: no allocation per round trip.
private func echoIntoBuffer<Top: StreamProtocol>(_ connection: Connection<Top>) async throws {
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
        var elements = buffer.mutableSpan
        var bytes = elements.mutableBytes
        guard let count = try await connection.receive(into: &bytes) else { return }
        try await connection.send(buffer[..<count])
    }
}
