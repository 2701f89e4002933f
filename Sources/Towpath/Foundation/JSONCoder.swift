public import FoundationEssentials

/// Values as JSON (RFC 8259).
public struct JSONCoder: NetworkCoder {
    private let encoder: JSONEncoder
    private let decoder: JSONDecoder

    /// With Foundation's coders, as they are set up: not to be changed afterwards.
    public init(encoder: JSONEncoder = JSONEncoder(), decoder: JSONDecoder = JSONDecoder()) {
        self.encoder = encoder
        self.decoder = decoder
    }

    /// It is text.
    public var isText: Bool { true }

    /// The value as JSON.
    public func encode(_ value: some Encodable) throws -> [UInt8] {
        Array(try encoder.encode(value))
    }

    /// The value of a JSON text.
    public func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: ArraySlice<UInt8>
    ) throws -> Value {
        try decoder.decode(type, from: Data(bytes))
    }
}

/// Values as property lists, in Apple's binary form; received also as XML.
public struct PropertyListCoder: NetworkCoder {
    /// A coder.
    public init() {}

    /// It is not text.
    public var isText: Bool { false }

    /// The value as a property list.
    public func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        return Array(try encoder.encode(value))
    }

    /// The value of a property list.
    public func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: ArraySlice<UInt8>
    ) throws -> Value {
        try PropertyListDecoder().decode(type, from: Data(bytes))
    }
}

extension NetworkCoder where Self == JSONCoder {
    /// JSON, with Foundation's defaults.
    public static var json: JSONCoder { JSONCoder() }
}

extension NetworkCoder where Self == PropertyListCoder {
    /// Property lists.
    public static var propertyList: PropertyListCoder { PropertyListCoder() }
}
