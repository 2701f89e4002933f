internal import TowpathReactor
internal import TowpathTLS
public import TowpathWire

/// The one error type of Towpath: what happened, in which stage, why, and what to do about it.
///
/// Two errors are equal when their codes are. A cancelled task gets `CancellationError` instead,
/// which is never anything else than the task's own cancellation.
public struct NetworkError: Error, Sendable {
    /// What kind of error this is. More codes may come in later versions: a `switch` over them needs
    /// a `default`.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code's name, such as `timedOut`.
        public let description: String

        init(_ description: String) { self.description = description }

        /// The text is no endpoint, or the endpoint cannot be used that way.
        public static let invalidEndpoint = Code("invalidEndpoint")
        /// An option cannot have its effect here: no permission, or the kernel does not know it.
        public static let optionFailed = Code("optionFailed")
        /// There is no such host name.
        public static let nameNotFound = Code("nameNotFound")
        /// No name server could answer.
        public static let resolverUnavailable = Code("resolverUnavailable")
        /// Nobody listens at the endpoint, or a firewall says so.
        public static let connectionRefused = Code("connectionRefused")
        /// The peer, or something on the way, ended the connection abruptly.
        public static let connectionReset = Code("connectionReset")
        /// No route leads to the endpoint.
        public static let unreachable = Code("unreachable")
        /// A time limit passed: the call's, the connection's or TCP's own.
        public static let timedOut = Code("timedOut")
        /// The peer finished sending before the bytes asked for were complete.
        public static let endOfStream = Code("endOfStream")
        /// More bytes came than the call's limit allows.
        public static let limitExceeded = Code("limitExceeded")
        /// Another receive of this connection is still waiting.
        public static let receiveInProgress = Code("receiveInProgress")
        /// The sending side was finished, on this side.
        public static let outputFinished = Code("outputFinished")
        /// The connection or listener was closed, on this side.
        public static let closed = Code("closed")
        /// The datagram is larger than the socket or the path can take.
        public static let messageTooLong = Code("messageTooLong")
        /// The local address or port belongs to somebody else, or to no interface.
        public static let addressUnavailable = Code("addressUnavailable")
        /// The process may not do this.
        public static let permissionDenied = Code("permissionDenied")
        /// No descriptors, memory or threads are left.
        public static let resourcesExhausted = Code("resourcesExhausted")
        /// The operation does not exist for this kind of connection.
        public static let notSupported = Code("notSupported")
        /// The peer's certificate does not prove who it is: see the cause.
        public static let certificateInvalid = Code("certificateInvalid")
        /// No key of the peer's certificates is pinned; the message lists those it has.
        public static let pinMismatch = Code("pinMismatch")
        /// The user's own verification refused the peer.
        public static let peerRejected = Code("peerRejected")
        /// The peer ended the connection with a TLS alert: see the cause.
        public static let refusedByPeer = Code("refusedByPeer")
        /// The stream ended without TLS's closing alert: something may be missing.
        public static let truncated = Code("truncated")
        /// The peer does not speak TLS.
        public static let notTLS = Code("notTLS")
        /// The two sides found nothing in common, or one broke the rules of TLS.
        public static let handshakeFailed = Code("handshakeFailed")
        /// The server answered something else than a WebSocket, or a listener refused a request: see the
        /// cause.
        public static let upgradeRefused = Code("upgradeRefused")
        /// The peer broke the rules of WebSocket or HTTP.
        public static let protocolViolation = Code("protocolViolation")
        /// The peer ended the WebSocket: the cause has its code, 1006 if it left without one.
        public static let closedByPeer = Code("closedByPeer")
        /// A message cannot be made of a value, or no value of a message: see ``Coder``.
        public static let codingFailed = Code("codingFailed")
        /// A system call failed in a way that no other code names: see the cause.
        public static let systemFailure = Code("systemFailure")
    }

    /// Where in a connection's life the error happened.
    public enum Stage: String, Sendable {
        /// Reading the endpoint, parameters and options.
        case setup
        /// Looking up the host name.
        case resolve
        /// Opening the transport.
        case connect
        /// Negotiating TLS.
        case tls
        /// Asking for a WebSocket, or answering a request for one.
        case upgrade
        /// Binding and accepting.
        case listen
        /// Sending.
        case send
        /// Receiving.
        case receive
        /// Closing.
        case close
    }

    /// What lies below the error.
    public enum Cause: Hashable, Sendable, CustomStringConvertible {
        /// A system call failed: the number is an errno.
        case system(errno: Int32, call: String)
        /// The resolver failed: the number is an `EAI_` code of getaddrinfo(3).
        case resolver(code: Int32)
        /// X509_verify_cert(3) failed: the number is an `X509_V_ERR_` code.
        case verification(code: Int32)
        /// The peer sent an alert (RFC 8446 §6).
        case alert(UInt8)
        /// OpenSSL's reasons.
        case openSSL(String)
        /// What a server answered to a request for a WebSocket, or was answered to one.
        case response(status: Int, fields: HTTPFields)
        /// Why a WebSocket ended.
        case webSocket(WebSocketCloseStatus)

        /// The cause in words.
        public var description: String {
            switch self {
            case .system(let errno, let call): SystemError(errno, call).description
            case .resolver(let code): "getaddrinfo code \(code)"
            case .verification(let code): "X509_V_ERR \(code)"
            case .alert(let number): "alert \(number), \(TLSError.name(ofAlert: number))"
            case .openSSL(let reasons): reasons
            case .response(let status, _): "status \(status)"
            case .webSocket(let status): "close code \(status)"
            }
        }
    }

    // Boxed: an error is carried through every result of the hot path, where eight bytes are enough.
    private final class Storage: Sendable {
        let code: Code
        let stage: Stage
        let message: String
        let cause: Cause?

        init(_ code: Code, _ stage: Stage, _ message: String, _ cause: Cause?) {
            self.code = code
            self.stage = stage
            self.message = message
            self.cause = cause
        }
    }

    private let storage: Storage

    package init(_ code: Code, _ stage: Stage, _ message: String, cause: Cause? = nil) {
        storage = Storage(code, stage, message, cause)
    }

    /// The kind of error.
    public var code: Code { storage.code }
    /// Where it happened.
    public var stage: Stage { storage.stage }
    /// What happened and what to do, for a person to read.
    public var message: String { storage.message }
    /// What lies below.
    public var cause: Cause? { storage.cause }
}

extension NetworkError: Equatable {
    /// Whether the codes are the same.
    public static func == (left: NetworkError, right: NetworkError) -> Bool {
        left.code == right.code
    }
}

extension NetworkError: CustomStringConvertible {
    /// The message, with the stage and the cause.
    public var description: String {
        let cause = cause.map { " [\($0)]" } ?? ""
        return "\(stage.rawValue): \(message)\(cause)"
    }
}

extension NetworkError {
    static func closedByPeer(_ status: WebSocketCloseStatus) -> NetworkError {
        NetworkError(
            .closedByPeer, .receive,
            status.code == .abnormalClosure
                ? "the peer left without a Close frame" : "the peer closed the WebSocket",
            cause: .webSocket(status))
    }

    static var noWebSocket: NetworkError {
        NetworkError(.notSupported, .setup, "this connection has no WebSocket")
    }
}
