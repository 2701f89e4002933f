internal import TowpathWire

/// When a ``ReconnectingConnection`` tries again, and when it gives up.
///
/// Each wait is the one before, times ``factor(_:)``, from ``initialDelay(_:)`` up to ``maximumDelay(_:)``,
/// made longer or shorter by ``jitter(_:)`` so that the clients of a server that comes back do not all come
/// at once.
public struct ReconnectPolicy: Sendable {
    package private(set) var initialDelay: Duration = .seconds(1)
    package private(set) var maximumDelay: Duration = .seconds(60)
    package private(set) var factor = 2.0
    package private(set) var jitter = 0.25
    package private(set) var attemptLimit: Int?
    package private(set) var stableAfter: Duration = .seconds(5)
    package private(set) var retries: @Sendable (NetworkError) -> Bool = ReconnectPolicy
        .isWorthRetrying

    private static var day: Duration { .seconds(86_400) }

    /// The defaults of the options.
    public init() {}

    /// The wait after a first failure, or after a connection that stood was lost; at most a day.
    /// Default: 1 s.
    public func initialDelay(_ delay: Duration) -> ReconnectPolicy {
        with { $0.initialDelay = min(max(.zero, delay), Self.day) }
    }

    /// The longest wait before jitter, at most a day. Default: 60 s.
    public func maximumDelay(_ delay: Duration) -> ReconnectPolicy {
        with { $0.maximumDelay = min(max(.zero, delay), Self.day) }
    }

    /// By how much each wait is longer than the one before, 1 to 100. Default: 2.
    public func factor(_ factor: Double) -> ReconnectPolicy {
        // A number that is none becomes 1.
        with { $0.factor = factor >= 1 ? min(factor, 100) : 1 }
    }

    /// By which share a wait may be longer or shorter, 0 to 1. Default: 0.25.
    public func jitter(_ share: Double) -> ReconnectPolicy {
        with { $0.jitter = share >= 0 ? min(share, 1) : 0 }
    }

    /// How many attempts in a row may fail before the last error is thrown; nil is no limit. A connection
    /// that was lost before ``stableAfter(_:)`` counts as one. Default: nil.
    public func attemptLimit(_ count: Int?) -> ReconnectPolicy {
        with { $0.attemptLimit = count.map { max(1, $0) } }
    }

    /// How long a connection has to stand for its attempt to count as a success, after which the waits
    /// begin anew. Default: 5 s.
    public func stableAfter(_ duration: Duration) -> ReconnectPolicy {
        with { $0.stableAfter = duration }
    }

    /// Which errors another attempt may mend; any other is thrown at once. Default:
    /// ``isWorthRetrying(_:)``.
    public func retries(where condition: @escaping @Sendable (NetworkError) -> Bool)
        -> ReconnectPolicy
    {
        with { $0.retries = condition }
    }

    /// Whether another attempt may mend an error: not what is wrong on this side (an endpoint, an option, a
    /// value that cannot be coded), nor a server's refusal for good (a redirect, or a status of 400 to 499
    /// but for 408, 425 and 429).
    @Sendable
    public static func isWorthRetrying(_ error: NetworkError) -> Bool {
        if case .response(let status, _)? = error.cause, error.code == .upgradeRefused {
            return status >= 500 || [408, 425, 429].contains(status)
        }
        let hopeless: [NetworkError.Code] = [
            .invalidEndpoint, .optionFailed, .notSupported, .receiveInProgress, .codingFailed,
        ]
        return !hopeless.contains(error.code)
    }

    private func with(_ change: (inout ReconnectPolicy) -> Void) -> ReconnectPolicy {
        var copy = self
        change(&copy)
        return copy
    }
}

/// Counts failures and tells how long to wait after each.
package struct Backoff: Sendable {
    /// A server may ask for a longer wait than the policy's, but not for more than this.
    private static let longestAsked: Duration = .seconds(3_600)

    private let policy: ReconnectPolicy
    private var delay: Duration
    /// Failures in a row: since the last connection that was stable.
    package private(set) var failureCount = 0

    package init(_ policy: ReconnectPolicy) {
        self.policy = policy
        delay = policy.initialDelay
    }

    /// How long to wait after this failure; nil if it was the last that may be, or cannot be mended.
    ///
    /// - Parameters:
    ///   - stood: How long the connection stood that was lost.
    ///   - random: 0 to 1.
    package mutating func wait(
        after error: NetworkError, stood: Duration? = nil, random: Double
    ) -> Duration? {
        if let stood, stood >= policy.stableAfter {
            self = Backoff(policy)
        } else {
            failureCount += 1
            if let limit = policy.attemptLimit, failureCount >= limit { return nil }
        }
        guard policy.retries(error) else { return nil }
        let base = min(delay, policy.maximumDelay)
        delay = min(base * policy.factor, policy.maximumDelay)
        return max(base * (1 + policy.jitter * (2 * random - 1)), Self.retryAfter(error) ?? .zero)
    }

    /// What a refusal asks for in seconds (RFC 9110 §10.2.3); its other form, a date, is not read.
    private static func retryAfter(_ error: NetworkError) -> Duration? {
        guard case .response(_, let fields)? = error.cause, let value = fields["Retry-After"],
            let seconds = UInt32(value)
        else { return nil }
        return min(.seconds(Int64(seconds)), longestAsked)
    }
}
