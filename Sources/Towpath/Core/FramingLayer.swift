internal import TowpathReactor
internal import TowpathWire

/// What carries a framer's messages.
enum MessageCarrier: Sendable, Equatable {
    /// A stream, in which the framer finds them.
    case stream
    /// Messages of a WebSocket, each of which is one.
    case messages(WebSocketMessageKind)
    /// Datagrams, each of which is one.
    case datagrams
}

/// What a connection has for its framer. The framer works behind a lock of its own, which nothing else
/// takes: it is the user's code, and may be slow.
final class FramingLayer<Framing: FramerProtocol>: Sendable {
    private struct State {
        var framer: Framing
        /// What came and is no message yet.
        var input: ArraySlice<UInt8> = []
        /// A whole message, where what carries it keeps them apart.
        var whole: [UInt8]?
        var inputEnded = false
        var isReceiving = false
    }

    private enum Decoded {
        case message(Framing.Receiving)
        case incomplete
        /// The stream has ended, between messages.
        case end
    }

    private let state: Locked<State>
    private let carrier: MessageCarrier
    private let maximumSize: Int

    init(_ framer: Framing, _ carrier: MessageCarrier, maximumSize: Int) {
        state = Locked(State(framer: framer))
        self.carrier = carrier
        self.maximumSize = maximumSize
    }

    // MARK: Receiving

    /// The next message; nil at the end, or where the listener drains and none has begun.
    func receive(
        _ core: ConnectionCore, timeout: Duration?, drain: DrainSignal?
    ) async throws -> Framing.Receiving? {
        try Task.checkCancellation()
        let deadline = MonotonicClock.deadline(after: timeout)
        let isFirst = state.withLock { state in
            defer { state.isReceiving = true }
            return !state.isReceiving
        }
        guard isFirst else { throw NetworkError.receiveInProgress }
        defer { state.withLock { $0.isReceiving = false } }
        while true {
            if core.isClosed { throw NetworkError.closed(.receive) }
            switch try decode() {
            case .message(let message): return message
            case .end: return nil
            case .incomplete:
                let isBetween = state.withLock { $0.input.isEmpty }
                let drain = isBetween ? drain : nil
                let bytes = try await core.receivePiece(carrier, timeout, until: deadline, drain)
                if bytes == nil, let drain, drain.isSignalled { return nil }
                keep(bytes)
            }
        }
    }

    private func keep(_ bytes: [UInt8]?) {
        state.withLock { state in
            guard let bytes else {
                state.inputEnded = true
                return
            }
            if carrier != .stream {
                state.whole = bytes
            } else if state.input.isEmpty {
                state.input = bytes[...]
            } else {
                state.input += bytes
            }
        }
    }

    private func decode() throws -> Decoded {
        try state.withLock { state in
            if carrier != .stream { return try decodeWhole(&state) }
            if !state.input.isEmpty {
                // What was taken leaves the buffer, whether it was a message or threw.
                defer { if state.input.isEmpty { state.input = [] } }
                if let message = try state.framer.decode(&state.input) { return .message(message) }
            }
            guard state.inputEnded else {
                guard state.input.count <= maximumSize else {
                    throw NetworkError(
                        .messageTooLong, .receive,
                        "\(state.input.count) bytes are no whole message yet; \(maximumSize) may be"
                    )
                }
                return .incomplete
            }
            if state.input.isEmpty { return .end }
            if let message = try state.framer.decodeEnd(&state.input) { return .message(message) }
            throw NetworkError(
                .endOfStream, .receive,
                "the stream ended within a message: \(state.input.count) bytes of it came")
        }
    }

    /// What carries it keeps messages apart.
    private func decodeWhole(_ state: inout State) throws -> Decoded {
        if state.inputEnded { return .end }
        guard let bytes = state.whole.take() else { return .incomplete }
        var input = bytes[...]
        guard let message = try state.framer.decode(&input) else {
            throw NetworkError(
                .protocolViolation, .receive, "a message of \(bytes.count) bytes is no whole one")
        }
        return .message(message)
    }

    // MARK: Sending

    func send(
        _ core: ConnectionCore, _ message: Framing.Sending, timeout: Duration?
    ) async throws {
        try Task.checkCancellation()
        switch carrier {
        case .messages(let kind):
            try await core.sendMessage(
                kind == .text ? .text : .binary, try encode(message), timeout: timeout)
        case .datagrams:
            let bytes = try encode(message)
            try await core.sendDatagram(bytes.span.bytes, timeout: timeout)
        case .stream:
            let deadline = MonotonicClock.deadline(after: timeout)
            try await core.takeRightToSend(until: deadline)
            let bytes: [UInt8]
            // In the order in which they are sent.
            do { bytes = try encode(message) } catch {
                core.endSending()
                throw error
            }
            // What a framer has encoded, its next message may refer to: it goes.
            try await core.finishSending(.init(bytes: bytes[...], isBound: true), until: deadline)
        }
    }

    private func encode(_ message: Framing.Sending) throws -> [UInt8] {
        try state.withLock { state in
            var bytes: [UInt8] = []
            try state.framer.encode(message, into: &bytes)
            return bytes
        }
    }
}

extension ConnectionCore {
    private static let pieceSize = 65_536

    /// Bytes of a stream, a message or a datagram; nil at the end, or where the listener drains.
    fileprivate func receivePiece(
        _ carrier: MessageCarrier, _ timeout: Duration?, until deadline: UInt64,
        _ drain: DrainSignal?
    ) async throws -> [UInt8]? {
        // As in `receive(_:_:)`.
        if let timeout, timeout <= .zero { state.withLock { $0.isReadable = true } }
        return try await receive(until: deadline) { state in
            let step = takePiece(carrier, &state)
            if case .blocked = step, let drain, drain.isSignalled { return .done(nil) }
            return step
        }
    }

    private func takePiece(_ carrier: MessageCarrier, _ state: inout State) -> Step<[UInt8]?> {
        switch carrier {
        case .stream: take(&state, atMost: Self.pieceSize)
        case .datagrams: takeDatagram(&state).map { $0?.bytes }
        case .messages:
            takeMessageOrEnd(&state).map { message in
                switch message {
                case .text(let text): Array(text.utf8)
                case .binary(let bytes): bytes
                case nil: nil
                }
            }
        }
    }
}
