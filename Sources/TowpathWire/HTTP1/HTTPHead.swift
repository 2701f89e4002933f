/// Why bytes are no head of an HTTP message.
package struct HTTPError: Error, Hashable, Sendable {
    package let message: String

    init(_ message: String) { self.message = message }
}

/// The head of a request: `GET /chat HTTP/1.1` and its fields (RFC 9112 §3).
package struct HTTPRequestHead: Hashable, Sendable {
    package var method: String
    package var target: String
    /// 1 of HTTP/1.1.
    package var minorVersion: Int
    package var fields: HTTPFields

    /// Reads a whole head, its empty line included.
    package init(parsing bytes: [UInt8]) throws(HTTPError) {
        let lines = try Lines(bytes)
        let parts = lines.first.split(
            separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, parts[0].allSatisfy(\.isTokenCharacter),
            !parts[1].isEmpty, parts[1].allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw HTTPError("no request line: \(lines.firstText)") }
        method = String(decoding: parts[0], as: UTF8.self)
        target = String(decoding: parts[1], as: UTF8.self)
        minorVersion = try Lines.minorVersion(parts[2])
        fields = lines.fields
    }
}

/// The head of a response: `HTTP/1.1 101 Switching Protocols` and its fields (RFC 9112 §4).
package struct HTTPResponseHead: Hashable, Sendable {
    package var minorVersion: Int
    package var status: Int
    package var reason: String
    package var fields: HTTPFields

    /// Reads a whole head, its empty line included.
    package init(parsing bytes: [UInt8]) throws(HTTPError) {
        let lines = try Lines(bytes)
        let parts = lines.first.split(
            separator: UInt8(ascii: " "), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[1].count == 3,
            parts[1].allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let status = Int(String(decoding: parts[1], as: UTF8.self)), status >= 100
        else { throw HTTPError("no status line: \(lines.firstText)") }
        self.status = status
        minorVersion = try Lines.minorVersion(parts[0])
        reason = parts.count == 3 ? String(decoding: parts[2], as: UTF8.self) : ""
        fields = lines.fields
    }
}

/// The lines of a head, each ended by CR LF.
private struct Lines {
    let first: ArraySlice<UInt8>
    let fields: HTTPFields

    init(_ bytes: [UInt8]) throws(HTTPError) {
        var rest = bytes[...]
        let first = try Self.line(&rest)
        guard first.allSatisfy(\.isFieldCharacter) else {
            throw HTTPError("a control character in the first line")
        }
        var fields: [HTTPField] = []
        while true {
            let line = try Self.line(&rest)
            if line.isEmpty { break }
            fields.append(try Self.field(line))
        }
        guard rest.isEmpty else { throw HTTPError("there are bytes behind the head") }
        self.first = first
        self.fields = HTTPFields(fields)
    }

    private static func line(_ rest: inout ArraySlice<UInt8>) throws(HTTPError) -> ArraySlice<UInt8>
    {
        guard let end = rest.firstIndex(where: { $0 == 0x0A || $0 == 0x0D }) else {
            throw HTTPError("a head ends without an empty line")
        }
        guard rest[end] == 0x0D, end + 1 < rest.endIndex, rest[end + 1] == 0x0A else {
            throw HTTPError("a line of a head ends otherwise than with CR LF")
        }
        defer { rest = rest[(end + 2)...] }
        return rest[..<end]
    }

    /// Nothing stands between the name and the colon, and no value goes on in the next line
    /// (RFC 9112 §5).
    private static func field(_ line: ArraySlice<UInt8>) throws(HTTPError) -> HTTPField {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
            line[..<colon].allSatisfy(\.isTokenCharacter)
        else { throw HTTPError("no field: \(text(line))") }
        var value = line[(colon + 1)...]
        while let first = value.first, first.isBlank { value = value.dropFirst() }
        while let last = value.last, last.isBlank { value = value.dropLast() }
        guard value.allSatisfy(\.isFieldCharacter) else {
            throw HTTPError("a control character in the field \(text(line[..<colon]))")
        }
        return HTTPField(
            String(decoding: line[..<colon], as: UTF8.self), String(decoding: value, as: UTF8.self))
    }

    static func minorVersion(_ text: ArraySlice<UInt8>) throws(HTTPError) -> Int {
        if text.elementsEqual("HTTP/1.1".utf8) { return 1 }
        if text.elementsEqual("HTTP/1.0".utf8) { return 0 }
        throw HTTPError("no version of HTTP/1: \(self.text(text))")
    }

    var firstText: String { Self.text(first) }

    /// For a message: no longer than it need be, and safe to print.
    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: bytes.prefix(80), as: UTF8.self).debugDescription
    }
}
