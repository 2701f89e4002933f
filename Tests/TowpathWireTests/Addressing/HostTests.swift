import Testing
import TowpathWire

@Suite("Hosts and addresses of either family")
struct HostTests {
    @Test(
        "names are kept as they are given",
        arguments: [
            "example.com", "example.com.", "localhost", "a", "a-b.c_d", "_dmarc.example", "EXAMPLE",
            "xn--bcher-kva.example", "1.2.3.4.example", "0x7g", "web.1", "1.2.3.4a", "-",
            String(repeating: "a", count: 63) + ".b",
            Array(repeating: "abcdefg", count: 31).joined(separator: ".") + ".12345",
            Array(repeating: "abcdefg", count: 31).joined(separator: ".") + ".12345.",
        ])
    func names(text: String) throws {
        let host = try Host(parsing: text)
        #expect(host == .name(text))
        #expect(host.description == text)
        #expect(host.address == nil)
        #expect(host.normalized == host)
    }

    @Test(
        "what cannot be a name is refused, with the reason",
        arguments: [
            ("", "each label of a host name has 1 to 63 bytes"), (".", "1 to 63 bytes"),
            ("a..b", "1 to 63 bytes"), (".a", "1 to 63 bytes"), ("a..", "1 to 63 bytes"),
            (String(repeating: "a", count: 64), "1 to 63 bytes"),
            (
                Array(repeating: "abcdefg", count: 31).joined(separator: ".") + ".123456",
                "at most 253"
            ),
            ("bücher.example", "pass the punycode (xn--) form"), ("a b", "only letters, digits"),
            ("a/b", "only letters, digits"), ("[a]", "only letters, digits"),
            ("a\0", "only letters"),
            ("256.1.1.1", "part \"256\" of an IPv4 address is above 255"),
            ("1.2.3", "an IPv4 address has four parts, this has 3"), ("1.2.3.4.", "this has 5"),
            ("127.1", "four parts"), ("1", "four parts"), ("1..2", "four parts"),
            ("0x7f000001", "four parts"), ("0X7F.0.0.1", "is not a number"),
            ("010.0.0.1", "leading zero"), ("a:b", "IPv6"),
        ])
    func refused(text: String, reason: String) {
        let error = #expect(throws: AddressError.self) { try Host(parsing: text) }
        #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
    }

    @Test(
        "addresses are recognised",
        arguments: [
            ("1.2.3.4", AddressFamily.ipv4), ("::1", .ipv6), ("fe80::1%eth0", .ipv6),
            ("::ffff:1.2.3.4", .ipv6),
        ])
    func addresses(text: String, family: AddressFamily) throws {
        let address = try IPAddress(parsing: text)
        #expect(address.family == family)
        #expect(address.description == text)
        let host = try Host(parsing: text)
        #expect(host.address == address)
        #expect(Host(address) == host)
        #expect(host.description == text)
    }

    @Test(
        "a text that is no address of either family is refused",
        arguments: ["a", "", ":", "[::1]", "1.2"])
    func noAddress(text: String) {
        #expect(throws: AddressError.self) { try IPAddress(parsing: text) }
    }
}
