internal import CTowpathLinux

/// Nanoseconds of CLOCK_MONOTONIC, the clock of every deadline.
package enum MonotonicClock {
    package static var now: UInt64 { shim_now() }

    /// `.max`, which is never, for nil and for centuries; now for a negative duration.
    package static func deadline(after duration: Duration?) -> UInt64 {
        guard let duration else { return .max }
        let (sum, overflow) = now.addingReportingOverflow(nanoseconds(in: duration))
        return overflow ? .max : sum
    }

    /// Whole nanoseconds, 0 for a negative duration, `.max` for one of more than 136 years.
    package static func nanoseconds(in duration: Duration) -> UInt64 {
        let (seconds, attoseconds) = duration.components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        guard seconds < 1 << 32 else { return .max }
        return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
    }
}
