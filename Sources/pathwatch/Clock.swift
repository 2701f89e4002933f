import Glibc

/// The time, for lines.
enum Clock {
    static var monotonicNanoseconds: UInt64 { nanoseconds(CLOCK_MONOTONIC) }

    /// Seconds between two times of ``monotonicNanoseconds``, to the millisecond.
    static func seconds(since start: UInt64) -> String {
        let milliseconds = (monotonicNanoseconds - start) / 1_000_000
        return "\(milliseconds / 1_000)." + digits(milliseconds + 1_000, 3)
    }

    private static func nanoseconds(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// RFC 3339 with microseconds.
    static var utc: String {
        let now = nanoseconds(CLOCK_REALTIME)
        return text(now, isUTC: true, "%Y-%m-%dT%H:%M:%S") + "." + digits(now / 1_000, 6) + "Z"
    }

    /// The time of day with milliseconds.
    static func timeOfDay(isUTC: Bool) -> String {
        let now = nanoseconds(CLOCK_REALTIME)
        return text(now, isUTC: isUTC, "%H:%M:%S") + "." + digits(now / 1_000_000, 3)
    }

    private static func digits(_ number: UInt64, _ count: Int) -> String {
        let text = String(number)
        return String(text.suffix(count))
    }

    private static func text(_ now: UInt64, isUTC: Bool, _ format: String) -> String {
        var seconds = time_t(now / 1_000_000_000)
        var parts = tm()
        if isUTC { gmtime_r(&seconds, &parts) } else { localtime_r(&seconds, &parts) }
        var buffer = [CChar](repeating: 0, count: 64)
        let count = strftime(&buffer, buffer.count, format, &parts)
        return String(decoding: buffer.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
