internal import TowpathReactor
internal import TowpathTLS
internal import TowpathWire

/// From a stream that stands to a WebSocket: the opening handshake (RFC 6455 §4).
extension ConnectionCore {
    /// More than a head with honest cookies has.
    private static let headLimit = 65_536
    private static let headEnd: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]

    // MARK: The client

    /// Asks the server for a WebSocket, in the phase `upgrading`.
    func upgrade(
        to options: WebSocketOptions, _ plan: ConnectionPlan, until deadline: UInt64
    ) async throws(NetworkError) {
        let offer = Self.offer(options, plan)
        let request: [UInt8]
        do throws(HTTPError) { request = try WebSocketHandshake.request(offer) } catch {
            throw NetworkError(.optionFailed, .setup, error.message)
        }
        try state.withLock { state throws(NetworkError) in try sendRequest(&state, request) }
        let head = try await responseHead(until: deadline)
        guard head.status == 101 else {
            throw NetworkError(
                .upgradeRefused, .upgrade,
                "the server answers \(head.status) \(head.reason) instead of a WebSocket",
                cause: .response(status: head.status, fields: head.fields))
        }
        let agreement: WebSocketHandshake.Agreement
        do throws(WebSocketError) {
            agreement = try WebSocketHandshake.agreement(
                head, to: offer, accept: Self.accept(offer.key))
        } catch {
            throw NetworkError(
                .protocolViolation, .upgrade, error.message,
                cause: .response(status: head.status, fields: head.fields))
        }
        let layer = WebSocketLayer(.client, options, agreement)
        state.withLock { begin(&$0, layer) }
    }

    private static func offer(
        _ options: WebSocketOptions, _ plan: ConnectionPlan
    ) -> WebSocketHandshake.Offer {
        var generator = SystemRandomNumberGenerator()
        let key = (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
        var offer = WebSocketHandshake.Offer(
            target: options.path, host: options.host ?? host(of: plan), key: Base64.encode(key))
        offer.subprotocols = options.subprotocols
        offer.compression = options.compression.configuration
        offer.fields = options.fields
        return offer
    }

    /// Without the port that is the scheme's own (RFC 6455 §4.1). Unix sockets have no host.
    private static func host(of plan: ConnectionPlan) -> String {
        guard case .success(.hostPort(let host, let port)) = plan.endpoint else {
            return "localhost"
        }
        // A zone means something on this host alone.
        let name = "\(host)".prefix { $0 != "%" }
        let text = if case .ipv6 = host { "[\(name)]" } else { String(name) }
        return port == (plan.tls == nil ? 80 : 443) ? text : "\(text):\(port)"
    }

    private static func accept(_ key: String) -> String {
        Base64.encode(Digest.sha1(Array((key + WebSocketHandshake.guid).utf8)))
    }

    private func sendRequest(
        _ state: inout State, _ request: [UInt8]
    ) throws(NetworkError) {
        guard state.phase == .upgrading else { throw state.failure ?? .closed(.upgrade) }
        state.orMakeRare.owed = request[...]
        var wakeups = Wakeups()
        // Nobody else sends yet, and what the kernel does not take goes with the next edge.
        flushOwed(&state, &wakeups)
        if let failure = state.failure { throw failure }
    }

    private func responseHead(
        until deadline: UInt64
    ) async throws(NetworkError) -> HTTPResponseHead {
        while true {
            let bytes = try await head(until: deadline)
            do throws(HTTPError) {
                let head = try HTTPResponseHead(parsing: bytes)
                // Interim answers come before the one that counts (RFC 9110 §15.2).
                if head.status == 101 || head.status >= 200 { return head }
            } catch {
                throw NetworkError(
                    .protocolViolation, .upgrade,
                    "the peer does not answer in HTTP: \(error.message)")
            }
        }
    }

    /// Everything up to the empty line.
    private func head(until deadline: UInt64) async throws(NetworkError) -> [UInt8] {
        var searched = 0
        do {
            return try await receive(until: deadline, isHandshake: true) {
                take(&$0, until: Self.headEnd, limit: Self.headLimit, searched: &searched)
            }
        } catch {
            guard let error = error as? NetworkError else { throw .closed(.upgrade) }
            switch error.code {
            case .endOfStream:
                throw NetworkError(
                    .endOfStream, .upgrade, "the peer left during the opening handshake")
            case .limitExceeded:
                throw NetworkError(
                    .limitExceeded, .upgrade,
                    "the head of the opening handshake has more than \(Self.headLimit) bytes")
            case .timedOut:
                throw .timedOut(.upgrade, "the peer did not finish the opening handshake in time")
            default: throw error
            }
        }
    }

    private func begin(_ state: inout State, _ layer: WebSocketLayer) {
        guard state.phase == .ready || state.phase == .upgrading else { return }
        state.webSocket = layer
        scheduleKeepAlive(layer)
    }

    // MARK: The server

    /// Answers a client's request; throws if there is to be no WebSocket, which the client was told.
    ///
    /// Nobody else knows of the connection yet.
    func acceptWebSocket(_ options: WebSocketOptions) async throws(NetworkError) {
        let deadline = MonotonicClock.deadline(after: options.handshakeTimeout)
        let bytes: [UInt8]
        do throws(NetworkError) { bytes = try await head(until: deadline) } catch {
            if error.code == .limitExceeded {
                try await refuse(.init(status: 431, message: error.message), until: deadline)
            }
            throw error
        }
        let request: WebSocketRequest
        do {
            request = try WebSocketRequest(HTTPRequestHead(parsing: bytes))
        } catch {
            let refusal =
                error as? WebSocketRefusal
                ?? .init(status: 400, message: (error as? HTTPError)?.message ?? "\(error)")
            return try await refuse(refusal, until: deadline)
        }
        let response = await answer(request, options)
        let answer: [UInt8]
        switch response.kind {
        case .refused(let status, let body):
            let refusal = WebSocketRefusal(status: status, message: body, fields: response.fields)
            return try await refuse(refusal, until: deadline)
        case .accepted(let subprotocol):
            let agreement: WebSocketHandshake.Agreement
            do throws(HTTPError) {
                (agreement, answer) = try WebSocketHandshake.acceptance(
                    of: request, accept: Self.accept(request.key), subprotocol: subprotocol,
                    fields: response.fields, compression: options.compression.configuration)
            } catch {
                return try await fail(
                    NetworkError(.optionFailed, .upgrade, error.message), deadline)
            }
            let layer = WebSocketLayer(.server, options, agreement, request: request)
            try await send(answer, until: deadline)
            let wakeups = state.withLock { state in
                begin(&state, layer)
                // Frames may have come together with the request.
                _ = pump(&state, layer)
                return layer.takeWakeups()
            }
            if let wakeups { wake(wakeups) }
        }
    }

    private func answer(
        _ request: WebSocketRequest, _ options: WebSocketOptions
    ) async -> WebSocketResponse {
        guard let acceptor = options.acceptor else { return .accept() }
        return await acceptor(request)
    }

    private func refuse(
        _ refusal: WebSocketRefusal, until deadline: UInt64
    ) async throws(NetworkError) {
        let answer: [UInt8]
        do throws(HTTPError) {
            answer = try WebSocketHandshake.refusal(
                status: refusal.status, fields: refusal.fields, body: refusal.message)
        } catch {
            return try await fail(NetworkError(.optionFailed, .upgrade, error.message), deadline)
        }
        try await send(answer, until: deadline)
        throw NetworkError(
            .upgradeRefused, .upgrade,
            "the request was answered with \(refusal.status): \(refusal.message)",
            cause: .response(status: refusal.status, fields: refusal.fields))
    }

    /// An answer that the listener's own options spoil.
    private func fail(_ error: NetworkError, _ deadline: UInt64) async throws(NetworkError) {
        if let answer = try? WebSocketHandshake.refusal(status: 500, fields: [], body: "") {
            try await send(answer, until: deadline)
        }
        throw error
    }

    private func send(_ bytes: [UInt8], until deadline: UInt64) async throws(NetworkError) {
        do {
            try await send(
                count: bytes.count, until: deadline,
                write: { core, state, offset in
                    bytes.withUnsafeBytes { core.put(&state, .init(rebasing: $0[offset...])) }
                }, rest: { bytes[$0...] })
        } catch {
            throw error as? NetworkError ?? .closed(.upgrade)
        }
    }
}
