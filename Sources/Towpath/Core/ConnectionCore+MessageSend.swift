internal import TowpathReactor
internal import TowpathWire

/// Messages of a WebSocket that go.
extension ConnectionCore {
    enum BegunSend {
        case done
        /// The right to send is held, and this is left.
        case rest(Frames)
        case notNow
    }

    /// Frames on their way.
    struct Frames {
        var bytes: ArraySlice<UInt8>
        /// The peer must get them whole: something of them has gone, or later ones refer to them.
        var isBound: Bool
    }

    /// Sends a message if the kernel takes it now.
    func sendMessageAtOnce(
        _ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer
    ) throws -> BegunSend {
        if Task.isCancelled { throw CancellationError() }
        let (begun, error) = state.withLock { state -> (BegunSend, NetworkError?) in
            guard state.phase == .ready, state.isWritable, !state.isSending, !state.outputFinished,
                !state.owes, state.failure == nil, !state.budget.isSpent(on: loop),
                let layer = state.webSocket, layer.end == nil, !layer.hasClosed, !layer.isClosing,
                !layer.hasControl
            else { return (.notNow, nil) }
            if layer.session.compresses(payload.count) {
                return put(&state, frames(layer, opcode, payload, isFinal: true))
            }
            let header = WebSocketFrameHeader(
                opcode, payloadCount: payload.count, maskKey: layer.maskKey)
            let count = header.count + payload.count
            guard count <= Scratch.byteCount else {
                return put(&state, frames(layer, opcode, payload, isFinal: true))
            }
            let target = UnsafeMutableRawBufferPointer(start: Scratch.buffer, count: count)
            header.write(payload, to: target)
            return put(&state, UnsafeRawBufferPointer(target), isBound: false) {
                Array(UnsafeRawBufferPointer(rebasing: target[$0...]))[...]
            }
        }
        if let error {
            deliverStates()
            throw error
        }
        return begun
    }

    private func put(_ state: inout State, _ frames: Frames) -> (BegunSend, NetworkError?) {
        frames.bytes.withUnsafeBytes { bytes in
            put(&state, bytes, isBound: frames.isBound) { frames.bytes.dropFirst($0) }
        }
    }

    private func put(
        _ state: inout State, _ bytes: UnsafeRawBufferPointer, isBound: Bool,
        rest: (Int) -> ArraySlice<UInt8>
    ) -> (BegunSend, NetworkError?) {
        switch put(&state, bytes) {
        case .done(let count):
            state.budget.spend(count)
            if count == bytes.count, !state.hasCiphertext { return (.done, nil) }
            state.isSending = true
            return (.rest(Frames(bytes: rest(count), isBound: isBound || count > 0)), nil)
        case .wouldBlock:
            state.isWritable = false
            state.isSending = true
            return (.rest(Frames(bytes: rest(0), isBound: isBound)), nil)
        case .failed(let code): return (.done, sendFailed(&state, code))
        }
    }

    /// A message's frame, behind the control frames that wait.
    private func frames(
        _ layer: WebSocketLayer, _ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer,
        isFinal: Bool, compresses: Bool? = nil
    ) -> Frames {
        var bytes = layer.takeControl()
        let compresses = compresses ?? layer.session.compresses(payload.count)
        let isBound = compresses || !bytes.isEmpty
        layer.session.append(
            opcode, payload, isFinal: isFinal, compressing: compresses, maskKey: layer.maskKey,
            to: &bytes)
        return Frames(bytes: bytes[...], isBound: isBound)
    }

    /// Sends a message that `sendMessageAtOnce` did not.
    func sendMessage(
        _ opcode: WebSocketOpcode, _ payload: [UInt8], timeout: Duration?
    ) async throws {
        let deadline = MonotonicClock.deadline(after: timeout)
        try await takeRightToSend(until: deadline)
        try await sendFrame(opcode, payload, isFinal: true, until: deadline)
    }

    /// Waits until nobody else sends, and the connection stands.
    func takeRightToSend(until deadline: UInt64) async throws {
        try await open(until: deadline, .send)
        let wake = await waitForTheRight(until: deadline)
        guard wake == .ready else { throw Self.error(for: wake) }
    }

    /// Sends a frame by one who holds the right to send, which goes on with the message's last frame, or if
    /// this throws.
    func sendFrame(
        _ opcode: WebSocketOpcode, _ payload: [UInt8], isFinal: Bool, until deadline: UInt64,
        mayCompress: Bool = true
    ) async throws {
        let frames: Frames
        do throws(NetworkError) {
            frames = try state.withLock { state throws(NetworkError) in
                let layer = try sendingLayer(&state)
                return payload.withUnsafeBytes {
                    self.frames(
                        layer, opcode, $0, isFinal: isFinal, compresses: mayCompress ? nil : false)
                }
            }
        } catch {
            endSending()
            throw error
        }
        try await finishSending(frames, until: deadline, keepsRight: !isFinal)
    }

    /// Sends the rest, by one who holds the right to send.
    func finishSending(
        _ frames: Frames, until deadline: UInt64, keepsRight: Bool = false
    ) async throws {
        let bytes = frames.bytes
        try await send(
            count: bytes.count, until: deadline, holdsRight: true, keepsRight: keepsRight,
            isBound: frames.isBound,
            write: { core, state, offset in
                bytes.withUnsafeBytes { core.put(&state, .init(rebasing: $0[offset...])) }
            }, rest: { bytes.dropFirst($0) })
    }
}
