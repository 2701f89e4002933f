/// Tests of single bytes; those of `Character` also take digits and letters beyond ASCII.
extension UInt8 {
    var isDecimalDigit: Bool { (0x30...0x39).contains(self) }

    var isHexDigit: Bool { isDecimalDigit || (0x61...0x66).contains(self | 0x20) }

    var isLetter: Bool { (0x61...0x7A).contains(self | 0x20) }
}

extension StringProtocol {
    /// One or more digits and nothing else: the initialisers of integers would take a sign as well.
    var isDecimal: Bool { !isEmpty && utf8.allSatisfy(\.isDecimalDigit) }
}

extension String {
    /// The pieces between the separators, empty ones too.
    ///
    /// By bytes: a `Character` can hide a separator behind a combining mark.
    func pieces(separatedBy separator: UInt8) -> [Substring] {
        utf8.split(separator: separator, omittingEmptySubsequences: false).map { Substring($0) }
    }
}
