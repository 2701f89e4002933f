import Foundation

/// The most that is allowed, from the table in the design.
enum Bar {
    case ratio(atMost: Double)
    /// For what should be high.
    case rate(atLeast: Double)
    case value(atMost: Double)

    var text: String {
        switch self {
        case .ratio(let limit): "≤ " + decimal(limit, places: 2)
        case .rate(let limit): "≥ " + decimal(limit, places: 2)
        case .value(let limit): "≤ " + decimal(limit, places: 0)
        }
    }

    /// Compares what the table shows, so with two decimal places.
    func verdict(ratio: Double?, value: Double) -> String {
        let (measured, limit) =
            switch self {
            case .ratio(let limit): (ratio ?? .infinity, limit)
            // What is above the bar is below when both have the other sign.
            case .rate(let limit): (-(ratio ?? 0), -limit)
            case .value(let limit): (value, limit)
            }
        let shown = (measured * 100).rounded() / 100
        if shown <= limit { return "pass" }
        guard limit != 0, shown.isFinite else { return "miss" }
        let percent = Int(((shown / limit - 1) * 100).rounded())
        return "miss \(percent < 0 ? "−" : "+")\(abs(percent)) %"
    }
}

/// A median and the two ends.
struct Spread {
    let median, minimum, maximum: Double

    /// Nothing of nothing.
    init?(_ values: [Double]) {
        let sorted = values.sorted()
        guard let first = sorted.first, let last = sorted.last else { return nil }
        let middle = sorted.count / 2
        minimum = first
        maximum = last
        median =
            sorted.count.isMultiple(of: 2)
            ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }
}

/// One line of the table.
///
/// The numbers come as text, in whatever unit the work has.
struct Row {
    var work: String
    var ours = ""
    var limit = ""
    var ratio = ""
    var bar = ""
    var verdict = ""
    var oursWall = ""
    var limitWall = ""

    private static let widths = [34, 11, 11, 19, 9, 11, 10, 10]

    static let header = Row(
        work: "work", ours: "ours", limit: "C", ratio: "ratio [min–max]", bar: "bar",
        verdict: "", oursWall: "ours wall", limitWall: "C wall")

    /// The work to the left, numbers to the right.
    var text: String {
        let cells = [work, ours, limit, ratio, bar, verdict, oursWall, limitWall]
        let padded = zip(cells, Self.widths).enumerated().map { index, cell in
            let space = String(repeating: " ", count: max(0, cell.1 - cell.0.count))
            return index == 0 ? cell.0 + space : space + cell.0
        }
        let line = padded.joined(separator: " ")
        return String(line.reversed().drop { $0 == " " }.reversed())
    }
}

func decimal(_ value: Double, places: Int) -> String {
    value.formatted(
        .number.precision(.fractionLength(places)).locale(Locale(identifier: "en_US")))
}

/// Nanoseconds in the unit that leaves three digits or so.
func time(_ nanoseconds: Double) -> String {
    switch nanoseconds {
    case ..<1_000: decimal(nanoseconds, places: 0) + " ns"
    case ..<1_000_000: decimal(nanoseconds / 1_000, places: 2) + " µs"
    case ..<1_000_000_000: decimal(nanoseconds / 1_000_000, places: 1) + " ms"
    default: decimal(nanoseconds / 1_000_000_000, places: 2) + " s"
    }
}

/// Writes a line at once, into a pipe too.
func emit(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

/// Writes a line for the operator.
func report(_ line: String) {
    FileHandle.standardError.write(Data((line + "\n").utf8))
}
