import Testing
import TowpathWire

@Suite("RFC 4291 §2.5.5.2: IPv4-mapped addresses")
struct IPv4MappedTests {
    @Test("an IPv4 address goes in and comes out")
    func mapped() throws {
        let address = IPv4Address(192, 0, 2, 1)
        let mapped = IPv6Address(ipv4Mapped: address)
        #expect(mapped.description == "::ffff:192.0.2.1")
        #expect(mapped.ipv4Mapped == address)
        #expect(try IPv6Address(parsing: "::ffff:192.0.2.1") == mapped)
    }

    @Test(
        "others have none",
        arguments: ["::", "::1", "::192.0.2.1", "1::ffff:1.2.3.4", "::1:ffff:0:0"])
    func others(text: String) throws {
        #expect(try IPv6Address(parsing: text).ipv4Mapped == nil)
    }

    @Test(
        "BR-014: an IPv4 peer of a dual-stack socket is shown and compared as plain IPv4",
        arguments: ["192.0.2.1", "127.0.0.1", "0.0.0.0", "255.255.255.255"])
    func normalized(text: String) throws {
        let plain = try IPv4Address(parsing: text)
        let seen = IPv6Address(ipv4Mapped: plain)
        #expect(IPAddress.v6(seen).normalized == .v4(plain))
        #expect(Host.ipv6(seen).normalized == .ipv4(plain))
        let endpoint = Endpoint.hostPort(host: .ipv6(seen), port: 53).normalized
        #expect(endpoint == .hostPort(host: .ipv4(plain), port: 53))
        #expect(endpoint.description == "\(text):53")
        #expect(endpoint.normalized == endpoint)
        // And back, for an AF_INET6 socket.
        #expect(IPv6Address(ipv4Mapped: plain) == seen)
    }

    @Test(
        "BR-014: every other endpoint is left as it is",
        arguments: ["[fe80::1%eth0]:1", "a:1", "/a", "@a", "[::1]:1"])
    func normalizedOthers(text: String) throws {
        let endpoint = try Endpoint(parsing: text)
        #expect(endpoint.normalized == endpoint)
    }
}
