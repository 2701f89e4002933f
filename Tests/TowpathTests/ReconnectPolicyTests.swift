import Testing
import Towpath

@Suite("When a client tries again")
struct ReconnectPolicyTests {
    private static let refused = NetworkError(.connectionRefused, .connect, "")

    private static func waits(
        _ policy: ReconnectPolicy, _ count: Int, random: Double = 0.5
    ) -> [Duration?] {
        var backoff = Backoff(policy)
        return (0..<count).map { _ in backoff.wait(after: refused, random: random) }
    }

    private static func status(_ status: Int, _ fields: HTTPFields = []) -> NetworkError {
        NetworkError(
            .upgradeRefused, .upgrade, "", cause: .response(status: status, fields: fields))
    }

    @Test("each wait is twice the one before, up to a minute")
    func doubling() {
        let waits = Self.waits(ReconnectPolicy(), 8).map { $0?.components.seconds }
        #expect(waits == [1, 2, 4, 8, 16, 32, 60, 60])
    }

    @Test("the jitter makes a wait longer or shorter by its share")
    func jitter() {
        let policy = ReconnectPolicy().initialDelay(.seconds(8)).jitter(0.5)
        #expect(Self.waits(policy, 1, random: 0) == [.seconds(4)])
        #expect(Self.waits(policy, 1, random: 1) == [.seconds(12)])
        #expect(Self.waits(policy.jitter(0), 1, random: 1) == [.seconds(8)])
    }

    @Test("the last attempt allowed is followed by no wait")
    func limit() {
        let policy = ReconnectPolicy().attemptLimit(3).jitter(0)
        #expect(Self.waits(policy, 3) == [.seconds(1), .seconds(2), nil])
        #expect(Self.waits(policy.attemptLimit(0), 1) == [nil])
        #expect(Self.waits(policy.attemptLimit(nil), 1_000).allSatisfy { $0 != nil })
    }

    @Test("a connection that stood long enough begins the waits anew, a short one does not")
    func stable() {
        var backoff = Backoff(ReconnectPolicy().attemptLimit(4))
        for _ in 0..<2 { _ = backoff.wait(after: Self.refused, random: 0.5) }
        let short = backoff.wait(
            after: Self.refused, stood: .milliseconds(4_999), random: 0.5)
        #expect(short == .seconds(4))
        #expect(backoff.failureCount == 3)
        let long = backoff.wait(after: Self.refused, stood: .seconds(5), random: 0.5)
        #expect(long == .seconds(1))
        #expect(backoff.failureCount == 0)
        #expect(backoff.wait(after: Self.refused, random: 0.5) == .seconds(2))
    }

    @Test("a stable connection that is lost is no failed attempt")
    func stableIsNoFailure() {
        var backoff = Backoff(ReconnectPolicy().attemptLimit(1))
        for _ in 0..<3 {
            #expect(backoff.wait(after: Self.refused, stood: .seconds(5), random: 0.5) != nil)
        }
        #expect(backoff.wait(after: Self.refused, stood: .zero, random: 0.5) == nil)
    }

    @Test("a server's Retry-After makes a wait longer, up to an hour, and never shorter")
    func retryAfter() {
        let answers: [(String, Duration)] = [
            ("7", .seconds(7)), ("0", .seconds(1)), ("99999", .seconds(3_600)),
            ("Fri, 31 Dec 1999 23:59:59 GMT", .seconds(1)), ("-5", .seconds(1)),
            ("99999999999999999999", .seconds(1)), ("", .seconds(1)),
        ]
        for (value, wait) in answers {
            var backoff = Backoff(ReconnectPolicy())
            let error = Self.status(503, [HTTPField("retry-after", value)])
            #expect(backoff.wait(after: error, random: 0.5) == wait, "\(value)")
        }
    }

    @Test("what no attempt can mend is not tried again, by default or by one's own rule")
    func hopeless() {
        for status in [301, 400, 401, 403, 404, 426] {
            #expect(!ReconnectPolicy.isWorthRetrying(Self.status(status)))
        }
        for status in [408, 425, 429, 500, 503] {
            #expect(ReconnectPolicy.isWorthRetrying(Self.status(status)))
        }
        for code in [
            NetworkError.Code.invalidEndpoint, .optionFailed, .notSupported, .codingFailed,
        ] {
            #expect(!ReconnectPolicy.isWorthRetrying(NetworkError(code, .setup, "")))
        }
        for code in [NetworkError.Code.timedOut, .nameNotFound, .closedByPeer, .certificateInvalid]
        {
            #expect(ReconnectPolicy.isWorthRetrying(NetworkError(code, .setup, "")))
        }
        let policy = ReconnectPolicy().retries { $0.code == .optionFailed }
        #expect(Self.waits(policy, 1) == [nil])
    }

    @Test(
        "numbers that make no sense are brought into their bounds",
        arguments: [
            ReconnectPolicy().factor(.nan).jitter(.nan), ReconnectPolicy().factor(.infinity),
            ReconnectPolicy().factor(-1).jitter(-1), ReconnectPolicy().jitter(.infinity),
            ReconnectPolicy().initialDelay(.seconds(Int64.max)).maximumDelay(.seconds(Int64.max)),
            ReconnectPolicy().initialDelay(.seconds(-5)).maximumDelay(.seconds(-5)),
        ])
    func bounds(policy: ReconnectPolicy) {
        for random in [0, 0.5, 1] {
            for wait in Self.waits(policy, 2_000, random: random) {
                #expect(wait.map { $0 >= .zero && $0 <= .seconds(2 * 86_400) } == true)
            }
        }
    }
}
