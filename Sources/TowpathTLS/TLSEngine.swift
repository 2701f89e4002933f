internal import CTowpathOpenSSL

/// One TLS connection without I/O: ciphertext and plaintext in, ciphertext and plaintext out.
///
/// Not safe for use by two threads at a time: whoever has one has it under a lock.
///
///     engine.lend(input: ciphertext, output: scratch)
///     … handshake(), read(into:), write(_:), close() …
///     engine.output, engine.sent(count)
///     engine.settle()
///
/// What was lent may be used again after `settle()`. After an error the engine has nothing more to
/// say but the alert in its output.
package final class TLSEngine {
    package enum Progress {
        case done
        case wantsInput
        /// The user's own verification is to say whether the peer is the right one.
        case wantsVerdict
        case failed(TLSError)
    }

    package enum Reading {
        case bytes(Int)
        /// The peer's close_notify.
        case end
        case wantsInput
        case failed(TLSError)
    }

    /// What the user's own verification said.
    enum Verdict { case notAsked, accepted, rejected(String) }

    package let context: TLSContext
    let peerName: TLSPeerName?
    package let ssl: OpaquePointer
    let transport: UnsafeMutablePointer<ossl_transport>
    /// Ciphertext that was lent and not read.
    var kept: UnsafeMutableRawPointer?
    var keptCount = 0

    package private(set) var failure: TLSError?
    package private(set) var isEstablished = false
    private var isClosed = false
    /// An error that a callback knows better than OpenSSL.
    var notedError: TLSError?
    var verdict = Verdict.notAsked
    /// The chain from the peer's certificate to an anchor.
    package internal(set) var verifiedChain: [Certificate] = []
    /// Pins that did not match, where that is only reported.
    package internal(set) var reportedMismatch: TLSError?
    /// Gets what can be taken up again, while the engine is used.
    package var onSession: (@Sendable (TLSSession) -> Void)?

    // Written once, then only read.
    private nonisolated(unsafe) static let method: OpaquePointer? = ossl_transport_method()
    private static let index: Int32 =
        CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL, 0, nil, nil, nil, nil)

    /// - Parameters:
    ///   - peerName: Whom a client wants to reach.
    ///   - session: What to take up again.
    package init(
        _ context: TLSContext, to peerName: TLSPeerName? = nil, resuming session: TLSSession? = nil
    ) throws(TLSError) {
        ERR_clear_error()
        guard let ssl = SSL_new(context.pointer) else { throw .configuration("no connection") }
        self.context = context
        self.peerName = peerName
        self.ssl = ssl
        transport = .allocate(capacity: 1)
        transport.initialize(to: ossl_transport())
        guard let method = Self.method, ossl_attach(ssl, method, transport) == 1 else {
            throw .configuration("no memory")
        }
        SSL_set_ex_data(ssl, Self.index, Unmanaged.passUnretained(self).toOpaque())
        switch context.configuration.role {
        case .client:
            try prepareClient(session)
            SSL_set_connect_state(ssl)
        case .server: SSL_set_accept_state(ssl)
        }
    }

    deinit {
        SSL_free(ssl)
        free(transport.pointee.own)
        free(kept)
        transport.deallocate()
    }

    private func prepareClient(_ session: TLSSession?) throws(TLSError) {
        let configuration = context.configuration
        guard peerName != nil || configuration.verification != .full else {
            throw TLSError(
                .configuration,
                "there is no name to check the peer's certificate for: give serverName(_:)")
        }
        if let peerName {
            if configuration.verification == .full, let parameters = SSL_get0_param(ssl) {
                try ChainPolicy.require(peerName, in: parameters)
            }
            // Addresses are no server names (RFC 6066 §3).
            if case .name(let name) = peerName, ossl_set_server_name(ssl, name) != 1 {
                throw .configuration("no server name \(name)")
            }
        }
        if configuration.staple != .ignored { _ = ossl_request_status(ssl) }
        if let session { SSL_set_session(ssl, session.pointer) }
    }

    /// The engine that a callback of OpenSSL is about.
    static func of(_ ssl: OpaquePointer) -> TLSEngine? {
        SSL_get_ex_data(ssl, index).map {
            Unmanaged<TLSEngine>.fromOpaque($0).takeUnretainedValue()
        }
    }

    // MARK: The connection

    package func handshake() -> Progress {
        if let failure { return .failed(failure) }
        if isEstablished { return .done }
        let result = ossl_handshake(ssl)
        switch result.status {
        case SSL_ERROR_NONE:
            isEstablished = true
            if let error = protocolError { return .failed(fail(error)) }
            return .done
        case SSL_ERROR_WANT_READ:
            if transport.pointee.ended == 0 { return .wantsInput }
            return .failed(fail(.leftDuringHandshake))
        case SSL_ERROR_WANT_RETRY_VERIFY: return .wantsVerdict
        default:
            let error = TLSError.taking(during: "the handshake failed")
            return .failed(fail(error.kind == .truncated ? .leftDuringHandshake : error))
        }
    }

    /// The user's own verification came to its end; the handshake goes on.
    package func decide(_ reason: String?) {
        verdict = reason.map { .rejected($0) } ?? .accepted
    }

    /// Fills as much of the target as there is.
    package func read(into target: UnsafeMutableRawBufferPointer) -> Reading {
        var total = 0
        while total < target.count, let base = target.baseAddress {
            if let failure { return total > 0 ? .bytes(total) : .failed(failure) }
            let result = ossl_read(ssl, base + total, target.count - total)
            if result.status == SSL_ERROR_NONE {
                total += result.count
                continue
            }
            switch reading(result.status) {
            case .failed(let error):
                // What came before it is still good.
                _ = fail(error)
                if total == 0 { return .failed(failure ?? error) }
            case let other where total == 0: return other
            default: return .bytes(total)
            }
        }
        return .bytes(total)
    }

    /// Looks at what came until there is plaintext to read.
    package func peek() -> Reading {
        if let failure { return .failed(failure) }
        let result = ossl_peek(ssl)
        if result.status == SSL_ERROR_NONE { return .bytes(1) }
        let reading = reading(result.status)
        if case .failed(let error) = reading { return .failed(fail(error)) }
        return reading
    }

    private func reading(_ status: Int32) -> Reading {
        switch status {
        case SSL_ERROR_WANT_READ:
            transport.pointee.ended == 0
                ? .wantsInput : .failed(TLSError(.truncated, TLSError.truncation))
        case SSL_ERROR_ZERO_RETURN: .end
        default: .failed(.taking(during: "TLS failed"))
        }
    }

    /// Encrypts what it takes, at most one record of 16 KiB.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> Int {
        if let failure { throw failure }
        guard bytes.count > 0 else { return 0 }
        let result = ossl_write(ssl, bytes.baseAddress, min(bytes.count, 16_384))
        guard result.status == SSL_ERROR_NONE else {
            throw fail(.taking(during: "TLS failed"))
        }
        return result.count
    }

    /// Puts a close_notify behind what was written (RFC 8446 §6.1). Reading goes on.
    package func close() {
        guard failure == nil, isEstablished, !isClosed else { return }
        isClosed = true
        _ = ossl_shutdown(ssl)
        _ = TLSError.takeErrors()
    }

    private func fail(_ error: TLSError) -> TLSError {
        let first = failure ?? notedError ?? error
        failure = first
        return first
    }
}
