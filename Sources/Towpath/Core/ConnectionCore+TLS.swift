internal import TowpathReactor
internal import TowpathTLS

/// Streams through TLS: the engine's ciphertext from and to the socket, all under the connection's lock.
extension ConnectionCore {
    // MARK: Receiving

    /// Plaintext into a target that is not empty; 0 is the end of the stream.
    func read(
        _ state: inout State, _ tls: TLSEngine, into target: UnsafeMutableRawBufferPointer
    ) -> Step<Int> {
        if state.budget.isSpent(on: loop) { return .spent }
        tls.lend(input: .init(start: nil, count: 0), output: Scratch.outgoing)
        defer { answer(&state, tls) }
        // Whole records, as many as the target holds: what is left over is copied twice.
        let room = max(1, min(target.count, Scratch.byteCount) / 16_384) * Scratch.recordCount
        for _ in 0..<TurnBudget.callLimit {
            switch tls.read(into: target) {
            case .bytes(let count):
                state.budget.spend(count)
                state.readsBulk = count >= Self.bulkThreshold
                return .done(count)
            case .end:
                state.inputEnded = true
                return state.failure.map { .failed($0) } ?? .done(0)
            case .failed(let error):
                state.inputEnded = true
                let error = NetworkError(error, .receive)
                fail(&state, error)
                return .failed(state.failure ?? error)
            case .wantsInput:
                guard state.isReadable else { return .blocked }
                if let step: Step<Int> = feed(&state, tls, room) { return step }
            }
        }
        return .spent
    }

    /// Gives the engine what the kernel has; a step if there is nothing.
    func feed<Value>(
        _ state: inout State, _ tls: TLSEngine, _ room: Int
    ) -> Step<Value>? {
        let incoming = UnsafeMutableRawBufferPointer(rebasing: Scratch.incoming[..<room])
        switch state.descriptor.receive(into: incoming) {
        case .done(let count) where count > 0:
            if count < room, !state.distrustsShortReads { state.isReadable = false }
            tls.lend(
                input: UnsafeRawBufferPointer(rebasing: incoming[..<count]),
                output: Scratch.outgoing)
            return nil
        case .done:
            tls.endInput()
            return nil
        case .wouldBlock:
            if state.mayDeferConnect { connectNow(&state) }
            state.isReadable = false
            return .blocked
        case .failed(let code):
            return .failed(receiveFailed(&state, code))
        }
    }

    /// Sends what the engine has to say in answer to what it read, and gives back what was lent.
    private func answer(_ state: inout State, _ tls: TLSEngine) {
        // In the middle of a send its own sender does so.
        _ = flush(&state, tls)
        tls.settle()
    }

    /// Looks at what came, until plaintext lies unread: so alerts are seen by one who only sends. Leaves
    /// it to the receive in progress, if there is one.
    func readAhead(_ state: inout State, _ writer: inout UnsafeContinuation<Wake, Never>?) {
        guard let tls = state.tls, state.phase == .ready, !state.isReceiving, state.isReadable,
            !state.inputEnded, state.failure == nil
        else { return }
        lookForAlert(&state, tls)
        if state.failure != nil {
            _ = state.orMakeRare
            writer = takeWriter(&state) ?? writer
        }
    }

    func lookForAlert(_ state: inout State, _ tls: TLSEngine) {
        tls.lend(input: .init(start: nil, count: 0), output: Scratch.outgoing)
        defer { answer(&state, tls) }
        for _ in 0..<4 {
            switch tls.peek() {
            case .bytes: return
            case .end:
                state.inputEnded = true
                return
            case .failed(let error):
                state.inputEnded = true
                return fail(&state, NetworkError(error, .receive))
            case .wantsInput:
                guard state.isReadable else { return }
                let step: Step<Int>? = feed(&state, tls, Scratch.recordCount)
                if step != nil { return }
            }
        }
    }

    // MARK: Sending

    /// Encrypts and sends; what was taken is encrypted, and may still lie in the engine.
    func put(
        _ state: inout State, _ tls: TLSEngine, _ bytes: UnsafeRawBufferPointer
    ) -> Transfer {
        tls.lend(input: .init(start: nil, count: 0), output: Scratch.outgoing)
        defer { tls.settle() }
        // First what was encrypted before.
        if tls.hasOutput {
            let transfer = flush(&state, tls)
            if transfer != .done(0) { return transfer }
        }
        var taken = 0
        while taken < bytes.count, taken < Scratch.byteCount {
            do throws(TLSError) {
                taken += try tls.write(UnsafeRawBufferPointer(rebasing: bytes[taken...]))
            } catch {
                fail(&state, NetworkError(error, .send))
                return .failed(0)
            }
        }
        if case .failed(let code) = flush(&state, tls) { return .failed(code) }
        return .done(taken)
    }

    /// Small pieces go into one record.
    func put(
        _ state: inout State, _ tls: TLSEngine, gathering pieces: [[UInt8]], from offset: Int
    ) -> Transfer {
        let whole = UnsafeMutableRawBufferPointer(start: Scratch.buffer, count: Scratch.byteCount)
        var (skipped, filled) = (offset, 0)
        for piece in pieces where filled < whole.count {
            guard skipped < piece.count else {
                skipped -= piece.count
                continue
            }
            let count = min(piece.count - skipped, whole.count - filled)
            piece.withUnsafeBytes { bytes in
                UnsafeMutableRawBufferPointer(rebasing: whole[filled..<(filled + count)])
                    .copyMemory(from: .init(rebasing: bytes[skipped..<(skipped + count)]))
            }
            (skipped, filled) = (0, filled + count)
        }
        return put(&state, tls, UnsafeRawBufferPointer(rebasing: whole[..<filled]))
    }

    /// `.done(0)` once all that was encrypted is with the kernel.
    func flush(_ state: inout State, _ tls: TLSEngine) -> Transfer {
        while tls.hasOutput {
            guard state.isWritable else {
                // The next edge goes on, also where nobody sends.
                _ = state.orMakeRare
                armOutput(&state)
                return .wouldBlock
            }
            switch state.descriptor.send(tls.output) {
            case .done(let count): tls.sent(count)
            case .wouldBlock: state.isWritable = false
            case .failed(let code): return .failed(code)
            }
        }
        return .done(0)
    }

    /// A close_notify behind what was sent; false if it must wait for the kernel. True for a plain
    /// stream.
    func sendClosingAlert(_ state: inout State) -> Bool {
        guard let tls = state.tls else { return true }
        tls.lend(input: .init(start: nil, count: 0), output: Scratch.outgoing)
        defer { tls.settle() }
        tls.close()
        return flush(&state, tls) != .wouldBlock
    }
}

extension Optional where Wrapped == Descriptor, Wrapped: ~Copyable {
    fileprivate borrowing func receive(into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
        switch self {
        case .some(let descriptor): descriptor.receive(into: buffer)
        case .none: .wouldBlock
        }
    }
}
