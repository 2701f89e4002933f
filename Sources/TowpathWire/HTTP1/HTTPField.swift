/// A field of an HTTP message: `Host: example.com` (RFC 9110 §5).
public struct HTTPField: Hashable, Sendable, CustomStringConvertible {
    /// The name as it was written; upper and lower case are the same.
    public let name: String
    /// The value, without spaces around it.
    public let value: String

    /// A field of any name and value; whoever sends it checks them.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// `Host: example.com`.
    public var description: String { "\(name): \(value)" }

    /// Whether the name is a token, and the value has no control character but the tab.
    package var isValid: Bool {
        !name.isEmpty && name.utf8.allSatisfy(\.isTokenCharacter)
            && value.utf8.allSatisfy(\.isFieldCharacter) && value.utf8.first?.isBlank != true
            && value.utf8.last?.isBlank != true
    }
}

/// The fields of an HTTP message in their order.
public struct HTTPFields: Hashable, Sendable, RandomAccessCollection, ExpressibleByArrayLiteral {
    private var fields: [HTTPField]

    /// Fields in this order.
    public init(_ fields: [HTTPField] = []) { self.fields = fields }

    /// Fields in this order.
    public init(arrayLiteral elements: HTTPField...) { fields = elements }

    /// Where the first one is.
    public var startIndex: Int { fields.startIndex }
    /// Behind the last one.
    public var endIndex: Int { fields.endIndex }
    /// The field at a place.
    public subscript(position: Int) -> HTTPField { fields[position] }

    /// The value of the field of a name; those of several, with commas in between (RFC 9110 §5.3).
    public subscript(name: String) -> String? {
        let values = values(of: name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The values of the fields of a name, in their order.
    public func values(of name: String) -> [String] {
        fields.filter { $0.name.isSame(as: name) }.map(\.value)
    }

    /// Puts a field behind the others.
    public mutating func append(_ field: HTTPField) { fields.append(field) }
}

extension String {
    /// Whether both are the same but for the case of ASCII letters.
    package func isSame(as other: String) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { $0.lowercased == $1.lowercased }
    }
}

extension UInt8 {
    fileprivate var lowercased: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }

    /// A character of a token (RFC 9110 §5.6.2).
    var isTokenCharacter: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(self)
        }
    }

    /// What a field's value may have: text, blanks, and bytes beyond ASCII (RFC 9110 §5.5).
    var isFieldCharacter: Bool { self >= 0x20 && self != 0x7F || self == 0x09 }

    /// A space or a tab.
    var isBlank: Bool { self == 0x20 || self == 0x09 }
}
