internal import TowpathReactor
internal import TowpathTLS

/// From the transport that stands to TLS that is negotiated.
extension ConnectionCore {
    /// The context of one side. A new one is made on the pool: the first with the host's trust reads 139
    /// certificates, and a loop has others to serve.
    func context(
        of tls: TLS, isServer: Bool, until deadline: UInt64
    ) async throws(NetworkError) -> TLSContext {
        do {
            let configuration =
                isServer ? try tls.serverConfiguration() : try tls.clientConfiguration()
            if let known = TLSContexts.known(configuration) { return known }
            let call = PoolCall(mayBeAbandoned: true) {
                Result { () throws(TLSError) in try TLSContexts.context(for: configuration) }
            }
            return try await call.run(on: loop, until: deadline, .tls).get()
        } catch {
            if let error = error as? TLSError { throw NetworkError(error, .setup) }
            throw error as? NetworkError ?? .closed(.tls)
        }
    }

    /// A client's own socket, with TLS or, for a WebSocket, without.
    func beginNegotiating(
        _ socket: consuming Descriptor, _ plan: ConnectionPlan, _ context: TLSContext?
    ) throws(NetworkError) {
        var socket: Descriptor? = consume socket
        try state.withLock { state throws(NetworkError) in
            // Closed meanwhile: the socket goes with this call.
            guard state.phase == .preparing else { throw state.failure ?? .closed(.tls) }
            do throws(TLSError) {
                if let context {
                    state.tls = try plan.tls?.engine(context, for: try? plan.endpoint.get())
                }
            } catch {
                throw NetworkError(error, .setup)
            }
            state.descriptor = socket.take()
            do throws(SystemError) { try register(&state) } catch {
                state.descriptor = nil
                state.tls = nil
                throw NetworkError(error, .connect, "the connection cannot be watched")
            }
            state.phase = context == nil ? .upgrading : .securing
            if case .tcp(let tcp) = plan.transport { state.mayDeferConnect = tcp.fastOpen == true }
            state.remote = state.descriptor.remoteAddress()?.compact
        }
    }

    /// A listener's connection, or one that was plain.
    func beginSecuring(_ make: () throws(TLSError) -> TLSEngine) throws(NetworkError) {
        try state.withLock { state throws(NetworkError) in
            guard state.phase == .ready else { throw state.failure ?? .closed(.tls) }
            do throws(TLSError) { state.tls = try make() } catch {
                throw NetworkError(error, .setup)
            }
            state.phase = .securing
        }
    }

    /// TLS stands, and what goes over it is asked for.
    func beginUpgrading() throws(NetworkError) {
        try state.withLock { state throws(NetworkError) in
            guard state.phase.isNegotiating else { throw state.failure ?? .closed(.upgrade) }
            state.phase = .upgrading
            // What came with the last message of the handshake lies in the engine.
            state.isReadable = true
        }
    }

    /// TLS stands, or what is above it.
    func endSecuring(_ report: EstablishmentReport? = nil) -> Wakeups {
        state.withLock { state in
            var wakeups = Wakeups()
            guard state.phase.isNegotiating else { return wakeups }
            state.phase = .ready
            // What came with the last message of the handshake lies in the engine.
            state.isReadable = true
            state.rare?.broadcast?.post(.ready)
            // Frames may have come together with the answer.
            if let layer = state.webSocket {
                _ = pump(&state, layer)
                if let new = layer.takeWakeups() { wakeups = new }
            }
            if let report {
                endPreparing(&state, report, &wakeups)
            } else if let rare = state.rare {
                wakeups.waiters += rare.readyWaiters
                rare.readyWaiters = []
                wakeups.broadcast = rare.broadcast
            }
            return wakeups
        }
    }

    /// A client's handshake failed, and the socket with it; the alert that says why is sent.
    func giveUpSecuring() {
        state.withLock { state in
            guard state.phase.isNegotiating else { return }
            state.phase = .preparing
            state.tls = nil
            state.webSocket = nil
            state.input = InputBuffer()
            state.rare?.owed = []
            guard let descriptor = state.descriptor.take() else { return }
            // Unread input would make the kernel reset the connection, and the alert would be lost.
            descriptor.shutdownOutput()
            while case .done(let count) = descriptor.receive(into: Scratch.incoming), count > 0 {}
            if let token = state.token.take() { loop.deregister(descriptor, token: token) }
        }
    }

    /// A server's handshake failed: sends the alert that says why, and closes in good order.
    func refuseInsecure() async {
        state.withLock { state in
            guard state.phase == .securing else { return }
            let alert = state.tls.map { ArraySlice($0.output) } ?? []
            state.tls = nil
            state.phase = .ready
            if !alert.isEmpty { state.orMakeRare.owed = alert }
        }
        await close()
    }

    /// What was agreed on; nil without TLS, before it stands, and after the end.
    var tlsPeer: TLSPeer? {
        state.withLock { state in
            state.tls.flatMap { $0.isEstablished ? TLSPeer($0) : nil }
        }
    }

    func exportKeyingMaterial(
        label: String, context: [UInt8]?, count: Int
    ) throws(NetworkError) -> [UInt8] {
        try state.withLock { state throws(NetworkError) in
            guard let tls = state.tls, tls.isEstablished else {
                throw NetworkError(.notSupported, .tls, "there is no TLS to export from")
            }
            do throws(TLSError) {
                return try tls.exportKeyingMaterial(label: label, context: context, count: count)
            } catch {
                throw NetworkError(error, .tls)
            }
        }
    }

    /// Makes a plain connection secure, which others wait for meanwhile.
    func upgrade(
        to tls: TLS, isServer: Bool, endpoint: Endpoint?, until deadline: UInt64
    ) async throws {
        try await open(until: deadline, .tls)
        try checkForUpgrade(isServer)
        let context = try await context(of: tls, isServer: isServer, until: deadline)
        try beginSecuring { () throws(TLSError) in
            isServer ? try TLSEngine(context) : try tls.engine(context, for: endpoint)
        }
        do throws(NetworkError) {
            try await secure(with: tls.hooks, until: deadline)
        } catch {
            let wakeups = state.withLock { state in
                var wakeups = Wakeups()
                fail(&state, error)
                wakeups.waiters = state.rare?.readyWaiters ?? []
                state.rare?.readyWaiters = []
                wakeups.broadcast = state.rare?.broadcast
                return wakeups
            }
            await refuseInsecure()
            wake(wakeups)
            throw error
        }
        wake(endSecuring())
    }

    /// Whoever sent bytes before TLS stands could put them into the secure stream (RFC 3207 §4.2).
    private func checkForUpgrade(_ isServer: Bool) throws(NetworkError) {
        try state.withLock { state throws(NetworkError) in
            guard kind == .tcp || kind == .unix else {
                throw NetworkError(.notSupported, .tls, "only streams can be upgraded to TLS")
            }
            guard state.phase == .ready, state.tls == nil, !state.isReceiving, !state.isSending,
                !state.owes, !state.outputFinished, !state.inputEnded
            else {
                throw state.failure
                    ?? NetworkError(
                        .notSupported, .tls,
                        "an upgrade needs a plain connection on which nobody sends or receives")
            }
            let early = isServer ? 0 : state.descriptor.unreadCount()
            guard state.input.isEmpty, early == 0 else {
                throw NetworkError(
                    .handshakeFailed, .tls,
                    "the peer sent \(state.input.count + early) plain bytes before TLS: they"
                        + " must not pass for secure ones")
            }
        }
    }
}

extension Optional where Wrapped == Descriptor, Wrapped: ~Copyable {
    fileprivate borrowing func unreadCount() -> Int {
        switch self {
        case .some(let descriptor): descriptor.unreadByteCount
        case .none: 0
        }
    }
}
