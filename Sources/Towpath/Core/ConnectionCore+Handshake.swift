internal import TowpathReactor
internal import TowpathTLS

/// The handshake of TLS, in the phase `securing`.
extension ConnectionCore {
    private enum HandshakeStep {
        case done
        case wantsInput, wantsOutput
        case wantsVerdict
        case failed(NetworkError)
    }

    /// Negotiates TLS, in the phase `securing`.
    ///
    /// What waits here waits in a function of its own, not inlined: a task keeps the memory of its deepest
    /// frames, and with all in one frame every connection of a listener would have 2 kB more.
    @inline(__always)
    func secure(with hooks: TLSHooks?, until deadline: UInt64) async throws(NetworkError) {
        while true {
            switch handshakeStep() {
            case .done:
                if let hooks { try await confirm(hooks) }
                return
            case .failed(let error): throw error
            case .wantsInput: try await waitToSecure(forInput: true, until: deadline)
            case .wantsOutput: try await waitToSecure(forInput: false, until: deadline)
            case .wantsVerdict: await verifyServer(with: hooks?.verifier)
            }
        }
    }

    private func waitToSecure(
        forInput: Bool, until deadline: UInt64
    ) async throws(NetworkError) {
        let wake =
            if !forInput { await parkSecuringWriter(until: deadline) } else if isOwnedByCurrentTask
            { await parkOwner(until: deadline) } else { await parkSecuringReader(until: deadline) }
        switch wake {
        case .ready: return
        case .cancelled: throw .closed(.tls)
        case .timedOut: throw .timedOut(.tls, "the peer did not finish the handshake in time")
        }
    }

    @inline(never)
    private func parkSecuringWriter(until deadline: UInt64) async -> Wake {
        await parkWriter(until: deadline)
    }

    @inline(never)
    private func parkSecuringReader(until deadline: UInt64) async -> Wake {
        await parkReader(until: deadline)
    }

    /// As the owner's receive does.
    @inline(never)
    private func parkOwner(until deadline: UInt64) async -> Wake {
        await _unsafeInheritExecutor_withUnsafeContinuation { installReader($0, deadline) }
    }

    @inline(never)
    private func handshakeStep() -> HandshakeStep { state.withLock { handshakeStep(&$0) } }

    private func handshakeStep(_ state: inout State) -> HandshakeStep {
        guard state.phase == .securing, let tls = state.tls else {
            return .failed(state.failure ?? .closed(.tls))
        }
        tls.lend(input: .init(start: nil, count: 0), output: Scratch.outgoing)
        defer { tls.settle() }
        for _ in 0..<TurnBudget.callLimit {
            let progress = tls.handshake()
            let isFailure = if case .failed = progress { true } else { false }
            switch flush(&state, tls) {
            case .wouldBlock where !isFailure: return .wantsOutput
            case .failed(let code) where !isFailure:
                lookForAlert(&state, tls)
                return .failed(
                    state.failure ?? NetworkError(SystemError(code, "send"), .tls, "send failed"))
            default: break
            }
            switch progress {
            case .done: return .done
            case .wantsVerdict: return .wantsVerdict
            case .failed(let error): return .failed(NetworkError(error, .tls))
            case .wantsInput:
                guard state.isReadable else { return .wantsInput }
                switch feed(&state, tls, Scratch.recordCount) as Step<Int>? {
                case nil: break
                case .failed(let error)?: return .failed(error)
                default: return .wantsInput
                }
            }
        }
        return .wantsInput
    }

    /// A client asks for the user's own verdict in the middle of the handshake.
    @inline(never)
    private func verifyServer(with verifier: TLSVerifier?) async {
        let peer = state.withLock { $0.tls.map { TLSPeer($0) } }
        guard let peer else { return }
        let refusal = await verifier?.refusal(of: peer)
        state.withLock { $0.tls?.decide(refusal) }
    }

    /// A server does so after the handshake, before any byte is read.
    @inline(never)
    private func confirm(_ hooks: TLSHooks) async throws(NetworkError) {
        if let observer = hooks.onPinMismatch,
            let mismatch = state.withLock({ $0.tls?.reportedMismatch })
        {
            observer(NetworkError(mismatch, .tls))
        }
        guard let verifier = hooks.verifier else { return }
        let peer = state.withLock { state in
            state.tls.flatMap { $0.context.configuration.role == .server ? TLSPeer($0) : nil }
        }
        guard let peer, let refusal = await verifier.refusal(of: peer) else { return }
        throw NetworkError(TLSError(.rejected, refusal), .tls)
    }
}
