/// How a connection was opened, or how that failed: what was looked up and what was tried.
public struct EstablishmentReport: Sendable {
    /// One look-up of a host name.
    public struct Resolution: Sendable {
        /// Where the answer came from.
        public enum Source: String, Sendable {
            /// The endpoint was an address already.
            case literal
            /// `Parameters.resolve(_:to:)`.
            case parameters
            /// getaddrinfo(3).
            case system
        }

        /// Where the answer came from.
        public let source: Source
        /// The family that was asked for.
        public let family: AddressFamily
        /// The addresses, in the resolver's order.
        public let addresses: [IPAddress]
        /// From the beginning of the opening to the answer.
        public let duration: Duration
        /// Why there are no addresses.
        public let error: NetworkError?
    }

    /// One attempt to connect to one address.
    public struct Attempt: Sendable {
        /// Whom it was made to.
        public let endpoint: Endpoint
        /// When it began, counted from the beginning of the opening.
        public let start: Duration
        /// How long it took; nil if it was still under way when the opening ended.
        public internal(set) var duration: Duration?
        /// Why it failed; nil for the one that won and for those that another one overtook.
        public internal(set) var error: NetworkError?
        /// Whether the connection uses this attempt.
        public internal(set) var succeeded = false
    }

    /// From the first use to ready or failed.
    public internal(set) var duration: Duration = .zero
    /// How long TLS was negotiated; nil without TLS.
    public internal(set) var handshakeDuration: Duration?
    /// The look-ups, as they were answered.
    public internal(set) var resolutions: [Resolution] = []
    /// The attempts, as they were started.
    public internal(set) var attempts: [Attempt] = []
}
