/// What is wrong with a text that was to be an address, a host or an endpoint.
public struct AddressError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The text, quoted and shortened, and what to change in it.
    ///
    /// It is safe to log: characters that could steer a terminal are escaped.
    public let message: String

    /// The message.
    public var description: String { message }

    init(_ text: some StringProtocol, _ reason: String) {
        message = Self.escaped("\(Self.quoted(text)): \(reason)")
    }

    /// For pieces of the text within a reason.
    static func quoted(_ text: some StringProtocol) -> String { "\"\(elided(text))\"" }

    /// The beginning of a text that someone sent by mistake, or to fill a log.
    static func elided(_ text: some StringProtocol) -> String {
        let shown = text.unicodeScalars.prefix(maximumShownCount)
        let isWhole = shown.endIndex == text.unicodeScalars.endIndex
        return String(String.UnicodeScalarView(shown)) + (isWhole ? "" : "…")
    }

    private static func escaped(_ text: String) -> String {
        text.unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator:
                scalar.escaped(asASCII: true)
            default: String(scalar)
            }
        }.joined()
    }

    /// Scalars, not characters: one character can have any number of combining marks.
    private static let maximumShownCount = 60
}
