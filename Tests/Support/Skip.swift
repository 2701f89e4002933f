import Glibc

/// Says aloud that something is not tested here.
package func skip(_ what: String) { print("skipped: \(what)") }

/// Whether this process runs under a sanitizer, whose own memory blurs every measurement, and which
/// does not see other programs.
package var isSanitized: Bool { getenv("TOWPATH_SANITIZED") != nil }
