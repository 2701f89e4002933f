extension Endpoint {
    /// Parses `HOST:PORT`, `[IPV6]:PORT`, `unix:PATH` or `unix:@NAME`.
    ///
    /// A text that begins with `/` or `./` is a path too, and one that begins with `@` an abstract
    /// name. `unix:` followed by nothing but digits is a port of the host `unix`.
    public init(parsing text: some StringProtocol) throws(AddressError) {
        self = try Self.parse(String(text), defaultPort: nil)
    }

    /// Parses what ``init(parsing:)`` does, and a host without a port: `HOST`, `IPV6`, `[IPV6]`.
    ///
    /// An IPv6 address without brackets is read whole: `::1:80` has the default port.
    public init(parsing text: some StringProtocol, defaultPort: UInt16) throws(AddressError) {
        self = try Self.parse(String(text), defaultPort: defaultPort)
    }

    /// Parses where to listen: `PORT`, `:PORT`, `*:PORT`, `IPV4:PORT`, `[IPV6]:PORT`, or a Unix
    /// domain socket as in ``init(parsing:)``.
    ///
    /// Without an address, that is every local one: see ``port(_:)``.
    public static func parseListener(_ text: some StringProtocol) throws(AddressError) -> Endpoint {
        let text = String(text)
        if let endpoint = try unixSocket(text) { return endpoint }
        if text.isDecimal { return .port(try port(Substring(text), in: text)) }
        let (host, port) = split(text)
        if let port, host.isEmpty || host == "*" { return .port(try Self.port(port, in: text)) }
        let endpoint = try parse(text, defaultPort: nil)
        guard endpoint.host?.address != nil else {
            throw AddressError(text, "a listener takes an address such as 127.0.0.1, not a name")
        }
        return endpoint
    }

    private static func parse(
        _ text: String, defaultPort: UInt16?
    ) throws(AddressError) -> Endpoint {
        if let endpoint = try unixSocket(text) { return endpoint }
        let (host, port) = split(text)
        guard !host.isEmpty else { throw AddressError(text, "missing host: write HOST:PORT") }
        let number = try port.map { port throws(AddressError) in try Self.port(port, in: text) }
        guard let number = number ?? defaultPort else { throw try missingPort(text) }
        return .hostPort(host: try Self.host(host, in: text), port: number)
    }

    /// The host with its brackets, and what follows its colon; the text whole if it has several
    /// colons and no brackets, for then it is an IPv6 address or nothing.
    private static func split(_ text: String) -> (host: Substring, port: Substring?) {
        let isBracketed = text.utf8.first == UInt8(ascii: "[")
        // The last one, for the zone may have one as well.
        let bracket = isBracketed ? text.utf8.lastIndex(of: UInt8(ascii: "]")) : nil
        let tail = text[(bracket ?? text.startIndex)...].utf8
        guard let colon = tail.firstIndex(of: UInt8(ascii: ":")),
            colon == tail.lastIndex(of: UInt8(ascii: ":"))
        else { return (Substring(text), nil) }
        return (text[..<colon], text[tail.index(after: colon)...])
    }

    private static func host(_ host: Substring, in text: String) throws(AddressError) -> Host {
        guard host.utf8.first == UInt8(ascii: "[") else { return try Host(parsing: host) }
        guard host.utf8.last == UInt8(ascii: "]") else {
            throw AddressError(text, "write [ADDRESS]:PORT")
        }
        return .ipv6(try IPv6Address(parsing: Substring(host.utf8.dropFirst().dropLast())))
    }

    private static func port(_ port: Substring, in text: String) throws(AddressError) -> UInt16 {
        guard !port.isEmpty else { throw AddressError(text, "missing port: write HOST:PORT") }
        guard port.isDecimal else {
            throw AddressError(text, "port \(AddressError.quoted(port)) is not a number")
        }
        guard let number = UInt16(port) else {
            let shown = AddressError.elided(port)
            throw AddressError(text, "port \(shown) is out of range (0 to 65535)")
        }
        return number
    }

    private static func missingPort(_ text: String) throws(AddressError) -> AddressError {
        if let colon = text.utf8.lastIndex(of: UInt8(ascii: ":")),
            let address = try? IPv6Address(parsing: text[..<colon]),
            let port = try? port(text[text.utf8.index(after: colon)...], in: text)
        {
            return AddressError(text, "ambiguous: write [\(address)]:\(port)")
        }
        switch try host(Substring(text), in: text) {
        case .ipv6: return AddressError(text, "missing port: write [ADDRESS]:PORT")
        case .name, .ipv4: return AddressError(text, "missing port: write HOST:PORT")
        }
    }

    private static func unixSocket(_ text: String) throws(AddressError) -> Endpoint? {
        var name = Substring(text).utf8
        if name.starts(with: "unix:".utf8), !Substring(name.dropFirst(5)).isDecimal {
            name = name.dropFirst(5)
        } else if !["/", "./", "@"].contains(where: { name.starts(with: $0.utf8) }) {
            return nil
        }
        let isAbstract = name.first == UInt8(ascii: "@")
        if isAbstract { name = name.dropFirst() }
        guard (1...maximumPathLength).contains(name.count) else {
            let limit = "1 to \(maximumPathLength) bytes"
            throw AddressError(text, "a socket's path or name has \(limit), this has \(name.count)")
        }
        guard isAbstract || !name.contains(0) else {
            throw AddressError(text, "a socket's path has no NUL")
        }
        return isAbstract ? .abstract(String(Substring(name))) : .unix(String(Substring(name)))
    }

    /// `sun_path` has 108 bytes, unix(7); a path ends, and an abstract name begins, with a NUL.
    private static let maximumPathLength = 107
}
