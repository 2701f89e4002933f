internal import TowpathReactor

/// Sending files.
extension ConnectionCore {
    /// So much goes out before the caller's cancellation is looked at again.
    private static let pieceSize = 1_048_576

    /// Returns how many bytes were sent; fewer than asked for where the file is shorter.
    func sendFile(
        _ path: String, from start: Int, count: Int?, timeout: Duration?
    ) async throws -> Int {
        if Task.isCancelled { throw CancellationError() }
        let deadline = MonotonicClock.deadline(after: timeout)
        try await open(until: deadline, .send)
        if case .failed(let error) = state.withLock({ refusal(&$0, holdsRight: false) }) {
            throw error
        }
        let wake = await waitForTheRight(until: deadline)
        guard wake == .ready else { throw Self.error(for: wake) }
        let isSecure = state.withLock { $0.tls != nil }
        var sent = 0
        do {
            // Another call may have ended the sending side meanwhile.
            if case .failed(let error) = state.withLock({ refusal(&$0, holdsRight: true) }) {
                throw error
            }
            let transfer = try await beginTransfer(path, until: deadline)
            let end = start + max(0, min(count ?? .max, transfer.size - start))
            while start + sent < end {
                if Task.isCancelled { throw CancellationError() }
                let size = min(end - start - sent, Self.pieceSize)
                let written =
                    isSecure
                    ? try await sendRead(transfer, from: start + sent, count: size, deadline)
                    : try await send(transfer, from: start + sent, count: size, deadline)
                // The file became shorter meanwhile.
                if written == 0 { break }
                sent += written
            }
            endSending()
            return sent
        } catch {
            // The peer has a part of the file, and nobody keeps the rest: nothing can follow it.
            if sent > 0 { cutOff() }
            endSending()
            throw error
        }
    }

    private func beginTransfer(_ path: String, until deadline: UInt64) async throws -> FileTransfer
    {
        let open = PoolCall { [self] in
            Result<FileTransfer, NetworkError> { () throws(NetworkError) in
                let socket = try onSocket(.send) { socket throws(SystemError) in
                    try socket.duplicate().release()
                }
                // Without the connection's lock: a disk may be slow.
                do throws(SystemError) {
                    return try FileTransfer(path, to: Descriptor(owning: socket))
                } catch {
                    throw NetworkError(error, .send, "cannot be read")
                }
            }
        }
        let opened = try await open.run(on: loop, until: deadline, .send)
        do { return try opened.get() } catch {
            throw NetworkError(error.code, .send, "\(path): \(error.message)", cause: error.cause)
        }
    }

    private func send(
        _ transfer: FileTransfer, from offset: Int, count: Int, _ deadline: UInt64
    ) async throws -> Int {
        while true {
            let failure = state.withLock { state -> NetworkError? in
                // Set by the next edge, which may come before the call below returns.
                state.isWritable = false
                return state.isOpen ? state.failure : state.failure ?? .closed(.send)
            }
            if let failure { throw failure }
            switch try await sendPiece(of: transfer, from: offset, count: count, deadline) {
            case .done(let written):
                return written
            case .wouldBlock:
                let wake = await parkWriter(until: deadline)
                guard wake == .ready else { throw Self.error(for: wake) }
            case .failed(let code):
                let error = NetworkError(SystemError(code, "sendfile"), .send, "file not sent")
                // Where it is the file that cannot be read, the connection is as good as before.
                if Self.isOfSocket(code) {
                    state.withLock { fail(&$0, error) }
                    deliverStates()
                }
                throw error
            }
        }
    }

    /// Through the process, which has to encrypt it.
    private func sendRead(
        _ transfer: FileTransfer, from offset: Int, count: Int, _ deadline: UInt64
    ) async throws -> Int {
        let call = PoolCall { transfer.read(from: offset, count: min(count, 262_144)) }
        let bytes = try await call.run(on: loop, until: deadline, .send).get()
        var sent = 0
        while true {
            let step = state.withLock { state in
                attempt(&state, count: bytes.count, offset: &sent, holdsRight: true) {
                    core, state, offset in
                    bytes.withUnsafeBytes { core.put(&state, .init(rebasing: $0[offset...])) }
                }
            }
            switch step {
            case .done: return bytes.count
            case .failed(let error):
                deliverStates()
                throw error
            case .blocked:
                let wake = await parkWriter(until: deadline)
                guard wake == .ready else { throw Self.error(for: wake) }
            case .spent, .retry, .queued, .notOpen:
                await loop.nextTurn()
                if let wake = Self.interruption(deadline) { throw Self.error(for: wake) }
            }
        }
    }

    /// One sendfile(2) on the pool. Only where the kernel was full is there an edge to come.
    private func sendPiece(
        of transfer: FileTransfer, from offset: Int, count: Int, _ deadline: UInt64
    ) async throws -> Transfer {
        var result = Transfer.done(0)
        defer { if result != .wouldBlock { state.withLock { $0.isWritable = true } } }
        let call = PoolCall { transfer.send(from: offset, count: count) }
        result = try await call.run(on: loop, until: deadline, .send)
        return result
    }

    /// Whether an error of sendfile(2) is the socket's, by tcp(7), and not the file's.
    private static func isOfSocket(_ code: Int32) -> Bool {
        switch SystemError(code, "sendfile").kind {
        case .refused, .reset, .timedOut, .unreachable: true
        default: false
        }
    }
}
