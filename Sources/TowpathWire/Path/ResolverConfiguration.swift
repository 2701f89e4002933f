/// The name servers of resolv.conf(5).
package struct ResolverConfiguration: Equatable, Sendable {
    /// Where systemd-resolved answers itself; it has a file of its own for those that it asks.
    private static let forwarder = IPAddress.v4(IPv4Address(127, 0, 0, 53))

    package let nameServers: [IPAddress]

    package init(parsing text: String) {
        nameServers = text.split(whereSeparator: \.isNewline).compactMap { line in
            let words = line.split { $0 == " " || $0 == "\t" }
            guard words.count > 1, words[0] == "nameserver" else { return nil }
            return try? IPAddress(parsing: words[1])
        }
    }

    package var isLocalForwarder: Bool { nameServers == [Self.forwarder] }
}
