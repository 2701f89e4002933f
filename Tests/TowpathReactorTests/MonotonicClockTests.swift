import Testing
import TowpathReactor

@Suite("Monotonic clock")
struct MonotonicClockTests {
    @Test(
        "durations become whole nanoseconds",
        arguments: [
            (Duration.zero, 0), (.nanoseconds(1), 1), (.milliseconds(250), 250_000_000),
            (.seconds(2), 2_000_000_000),
            (Duration(secondsComponent: 0, attosecondsComponent: 1), 0),
            (Duration(secondsComponent: 0, attosecondsComponent: 1_999_999_999), 1),
        ] as [(Duration, UInt64)])
    func nanoseconds(duration: Duration, expected: UInt64) {
        #expect(MonotonicClock.nanoseconds(in: duration) == expected)
    }

    @Test(
        "a negative duration is none",
        arguments: [
            Duration.nanoseconds(-1), .seconds(-1), .milliseconds(-1_500), .seconds(Int64.min),
        ])
    func negative(duration: Duration) {
        #expect(MonotonicClock.nanoseconds(in: duration) == 0)
        #expect(MonotonicClock.deadline(after: duration) <= MonotonicClock.now)
    }

    @Test("a duration of centuries is never")
    func saturation() {
        let seconds = Int64(UInt32.max)
        #expect(
            MonotonicClock.nanoseconds(in: .seconds(seconds)) == UInt64(seconds) * 1_000_000_000)
        #expect(MonotonicClock.nanoseconds(in: .seconds(seconds + 1)) == .max)
        #expect(MonotonicClock.nanoseconds(in: .seconds(Int64.max)) == .max)
        #expect(MonotonicClock.deadline(after: .seconds(Int64.max)) == .max)
        #expect(MonotonicClock.deadline(after: nil) == .max)
    }

    @Test("the clock does not go back, and a deadline lies after it")
    func order() {
        let before = MonotonicClock.now
        let deadline = MonotonicClock.deadline(after: .seconds(1))
        let after = MonotonicClock.now
        #expect(before <= after)
        #expect(deadline >= before + 1_000_000_000)
        #expect(deadline <= after + 1_000_000_000)
    }
}
