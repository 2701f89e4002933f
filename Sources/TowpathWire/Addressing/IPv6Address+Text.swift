extension IPv6Address: CustomStringConvertible {
    /// Parses every form of RFC 4291 §2.2 (`::`, an IPv4 address as the last 32 bits), with or
    /// without a zone (`%eth0`, `%3`; RFC 4007 §11).
    public init(parsing text: some StringProtocol) throws(AddressError) {
        let text = String(text)
        let percent = text.utf8.firstIndex(of: UInt8(ascii: "%"))
        let zone = percent.map { String(text[text.utf8.index(after: $0)...]) }
        if let zone, !Self.isZone(zone) { throw AddressError(text, Self.zoneReason) }

        var (high, low): (UInt64, UInt64) = (0, 0)
        for group in try Self.groups(in: String(text[..<(percent ?? text.endIndex)])) {
            high = high << 16 | low >> 48
            low = low << 16 | UInt64(group)
        }
        self.init(high: high, low: low, zone: zone)
    }

    /// The one canonical form of RFC 5952, followed by the zone if there is one.
    public var description: String {
        let zone = zone.map { "%" + $0 } ?? ""
        if let ipv4Mapped { return "::ffff:\(ipv4Mapped)\(zone)" }
        let groups = [high, low].flatMap { half in
            [48, 32, 16, 0].map { UInt16(truncatingIfNeeded: half >> $0) }
        }
        let hex = { (groups: ArraySlice<UInt16>) in
            groups.map { String($0, radix: 16) }.joined(separator: ":")
        }
        guard let zeros = Self.longestZeros(in: groups) else { return hex(groups[0...]) + zone }
        return hex(groups[..<zeros.lowerBound]) + "::" + hex(groups[zeros.upperBound...]) + zone
    }

    /// RFC 5952 §4.2: the longest run of zeros, the first of equals, never a single group.
    private static func longestZeros(in groups: [UInt16]) -> Range<Int>? {
        var longest = 0..<1
        var start = 0
        for (index, group) in groups.enumerated() {
            if group != 0 {
                start = index + 1
            } else if index + 1 - start > longest.count {
                longest = start..<index + 1
            }
        }
        return longest.count > 1 ? longest : nil
    }

    private static func groups(in text: String) throws(AddressError) -> [UInt16] {
        var pieces = text.pieces(separatedBy: UInt8(ascii: ":"))
        // A "::" at an end leaves two empty pieces there, any other one leaves one.
        let opens = text.utf8.starts(with: "::".utf8)
        let closes = text.utf8.suffix(2).elementsEqual("::".utf8)
        if opens { pieces.removeFirst() }
        if closes { pieces.removeLast() }

        var groups: [UInt16] = []
        var gap: Int?
        for (index, piece) in pieces.enumerated() {
            let isLast = index == pieces.count - 1
            if piece.isEmpty {
                guard gap == nil, index > 0 || opens, !isLast || closes else {
                    throw AddressError(text, "no IPv6 address: a group is empty")
                }
                gap = groups.count
            } else if isLast, piece.utf8.contains(UInt8(ascii: ".")) {
                let number = try IPv4Address(parsing: piece).rawValue
                groups += [UInt16(number >> 16), UInt16(truncatingIfNeeded: number)]
            } else if piece.utf8.count <= 4, piece.utf8.allSatisfy(\.isHexDigit),
                let group = UInt16(piece, radix: 16)
            {
                groups.append(group)
            } else {
                let name = "group \(AddressError.quoted(piece)) of an IPv6 address"
                throw AddressError(text, "\(name) is not one to four hexadecimal digits")
            }
        }
        guard gap == nil ? groups.count == 8 : groups.count < 8 else {
            throw AddressError(text, "an IPv6 address has eight groups, this has \(groups.count)")
        }
        if let gap {
            groups.insert(contentsOf: repeatElement(0, count: 8 - groups.count), at: gap)
        }
        return groups
    }
}
