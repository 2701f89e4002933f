import TowpathWire

/// Messages made by hand.
enum Made {
    /// In the byte order of the host.
    static func number<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number) { Array($0) }
    }

    /// With its padding.
    static func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
        let bytes = number(UInt16(4 + value.count)) + number(type) + value
        return bytes + [UInt8](repeating: 0, count: -bytes.count & 3)
    }

    static func message(
        _ type: UInt16, flags: UInt16 = 0, sequence: UInt32 = 0, _ payload: [UInt8]
    ) -> [UInt8] {
        number(UInt32(16 + payload.count)) + number(type) + number(flags) + number(sequence)
            + number(UInt32(0)) + payload
    }

    static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
}

/// All messages of a datagram, or why there are none.
func messages(in bytes: [UInt8]) throws(NetlinkError) -> [NetlinkMessage] {
    // As a slice that does not begin at 0, and with something behind it, so that a wrong index shows.
    let padded = [0xAA, 0xAA, 0xAA] + bytes + [0xAA]
    var rest = NetlinkMessages(padded[3..<(3 + bytes.count)])
    var messages: [NetlinkMessage] = []
    while let message = try rest.next() { messages.append(message) }
    return messages
}

/// What the messages of a datagram say.
func contents(of bytes: [UInt8]) throws(NetlinkError) -> [RouteNetlink] {
    var contents: [RouteNetlink] = []
    for message in try messages(in: bytes) { contents.append(try RouteNetlink(message)) }
    return contents
}

/// What the only message of a datagram says.
func content(of bytes: [UInt8]) throws(NetlinkError) -> RouteNetlink? {
    let contents = try contents(of: bytes)
    return contents.count == 1 ? contents.first : nil
}

extension LinkMessage {
    init(_ index: UInt32, _ name: String, _ configure: (inout LinkMessage) -> Void = { _ in }) {
        self.init()
        (self.index, self.name, mtu, hardwareType) = (index, name, 1_500, 1)
        configure(&self)
    }
}

extension AddressMessage {
    init(
        _ index: UInt32, _ text: String, _ prefixLength: UInt8, flags: UInt32 = 0x80,
        scope: UInt8 = AddressMessage.scopeUniverse
    ) throws {
        self.init()
        address = try IPAddress(parsing: text)
        (self.index, self.prefixLength, self.scope) = (index, prefixLength, scope)
        self.flags = Flags(rawValue: flags)
    }
}

extension RouteMessage.Hop {
    init(_ interface: UInt32?, _ gateway: String? = nil, flags: RouteMessage.Flags = []) throws {
        self.init()
        self.interface = interface
        self.gateway = try gateway.map { try IPAddress(parsing: $0) }
        self.flags = flags
    }
}

extension RouteMessage {
    init(
        _ family: AddressFamily, table: UInt32 = RouteMessage.tableMain, to text: String? = nil,
        _ length: UInt8 = 0, priority: UInt32 = 0, from source: String? = nil, hops: [Hop] = [],
        _ configure: (inout RouteMessage) -> Void = { _ in }
    ) throws {
        self.init()
        self.family = family
        destination = try text.map { try IPAddress(parsing: $0) }
        preferredSource = try source.map { try IPAddress(parsing: $0) }
        (self.table, destinationLength, self.priority) = (table, length, priority)
        self.hops = hops
        configure(&self)
    }
}
