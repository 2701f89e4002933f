internal import TowpathReactor
internal import TowpathTLS

extension ConnectionCore.State {
    init(phase: ConnectionCore.Phase, kind: TransportKind) {
        self.phase = phase
        // A Unix stream may stop short of its queue's end where descriptors were passed along.
        distrustsShortReads = kind == .unix
        isOutputArmed = kind == .tcp
    }

    var events: ReadyEvents {
        isOutputArmed ? [.input, .inputEnd, .urgent, .output] : [.input, .inputEnd, .urgent]
    }

    /// The socket is there, and sends that were accepted go on.
    var isOpen: Bool { phase == .ready || phase == .closing }

    var owes: Bool { (rare.map { !$0.owed.isEmpty } ?? false) || hasCiphertext }

    /// Some of what was encrypted is not sent.
    var hasCiphertext: Bool { tls?.hasOutput ?? false }

    /// Whether something is owed: control frames that wait go once nothing else does.
    var hasToSend: Bool {
        mutating get {
            if owes { return true }
            guard let webSocket, webSocket.hasControl else { return false }
            orMakeRare.owed = webSocket.takeControl()[...]
            return true
        }
    }

    var orMakeRare: ConnectionCore.Rare {
        mutating get {
            if let rare { return rare }
            let new = ConnectionCore.Rare()
            rare = new
            return new
        }
    }
}

extension ConnectionCore {
    /// Whether it was closed on this side: what was received is for nobody.
    var isClosed: Bool {
        state.withLock { ($0.phase == .closing || $0.phase == .closed) && $0.failure == nil }
    }
}

extension ConnectionCore.Phase {
    /// Whether somebody reads from the socket: of a handshake, or a user.
    var isReading: Bool { self == .ready || isNegotiating }

    /// Whether the transport stands, and what is above it is being negotiated.
    var isNegotiating: Bool { self == .securing || self == .upgrading }
}

/// Which socket carries a connection.
enum TransportKind: UInt8, Sendable {
    case tcp, unix
    /// UDP or Unix datagrams on a socket of its own.
    case datagram
    /// One of those who share a UDP listener's socket.
    case peer
}
