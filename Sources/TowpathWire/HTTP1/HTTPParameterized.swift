/// A member of a list, with parameters: `permessage-deflate; client_max_window_bits=10`
/// (RFC 6455 §9.1, RFC 9110 §5.6.6).
package struct HTTPParameterized: Hashable, Sendable {
    package struct Parameter: Hashable, Sendable {
        package let name: String
        package let value: String?
    }

    package let name: String
    package private(set) var list: [Parameter] = []

    var parameters: [(String, String?)] { list.map { ($0.name, $0.value) } }

    /// The members of all fields of one name; nil if one is malformed.
    package static func list(_ values: [String]) -> [HTTPParameterized]? {
        var members: [HTTPParameterized] = []
        for value in values {
            var scanner = Scanner(rest: Array(value.utf8)[...])
            repeat {
                scanner.skipBlanks()
                // Empty members are passed over (RFC 9110 §5.6.1.2).
                if scanner.isAtEnd || scanner.rest.first == UInt8(ascii: ",") { continue }
                guard let member = scanner.member() else { return nil }
                members.append(member)
            } while scanner.take(UInt8(ascii: ","))
            if !scanner.isAtEnd { return nil }
        }
        return members
    }

    /// The tokens of all fields of one name; nil if one is none.
    package static func tokens(_ values: [String]) -> [String]? {
        guard let members = list(values), members.allSatisfy({ $0.list.isEmpty }) else {
            return nil
        }
        return members.map(\.name)
    }

    /// The extensions of all fields of one name; nil if one is malformed, or has a value in quotes that is no
    /// token (RFC 6455 §9.1).
    package static func extensions(_ values: [String]) -> [HTTPParameterized]? {
        guard let members = list(values) else { return nil }
        let areTokens = members.allSatisfy { member in
            member.list.allSatisfy { parameter in
                parameter.value.map { !$0.isEmpty && $0.utf8.allSatisfy(\.isTokenCharacter) }
                    ?? true
            }
        }
        return areTokens ? members : nil
    }

    private init(_ name: String) { self.name = name }

    private struct Scanner {
        var rest: ArraySlice<UInt8>

        var isAtEnd: Bool { rest.isEmpty }

        mutating func skipBlanks() { rest = rest.drop { $0.isBlank } }

        mutating func take(_ byte: UInt8) -> Bool {
            guard rest.first == byte else { return false }
            rest = rest.dropFirst()
            return true
        }

        mutating func member() -> HTTPParameterized? {
            guard let name = token() else { return nil }
            var member = HTTPParameterized(name)
            skipBlanks()
            while take(UInt8(ascii: ";")) {
                skipBlanks()
                guard let name = token() else { return nil }
                skipBlanks()
                var value: String?
                if take(UInt8(ascii: "=")) {
                    skipBlanks()
                    guard let text = rest.first == UInt8(ascii: "\"") ? quoted() : token() else {
                        return nil
                    }
                    value = text
                }
                member.list.append(Parameter(name: name, value: value))
                skipBlanks()
            }
            return member
        }

        mutating func token() -> String? {
            let token = rest.prefix { $0.isTokenCharacter }
            guard !token.isEmpty else { return nil }
            rest = rest[token.endIndex...]
            return String(decoding: token, as: UTF8.self)
        }

        mutating func quoted() -> String? {
            var bytes: [UInt8] = []
            rest = rest.dropFirst()
            while var byte = rest.popFirst() {
                if byte == UInt8(ascii: "\"") { return String(decoding: bytes, as: UTF8.self) }
                if byte == UInt8(ascii: "\\") {
                    guard let escaped = rest.popFirst() else { return nil }
                    byte = escaped
                }
                bytes.append(byte)
            }
            return nil
        }
    }
}
