import Glibc
import TestSupport
import Testing
import TowpathWire

@Suite("RFC 4291 §2.2: text forms of IPv6 addresses")
struct IPv6ParsingTests {
    @Test(
        "every form is read",
        arguments: [
            ("::", [0, 0, 0, 0, 0, 0, 0, 0]), ("::1", [0, 0, 0, 0, 0, 0, 0, 1]),
            ("1::", [1, 0, 0, 0, 0, 0, 0, 0]),
            (
                "ABCD:EF01:2345:6789:abcd:ef01:2345:6789",
                [0xABCD, 0xEF01, 0x2345, 0x6789, 0xABCD, 0xEF01, 0x2345, 0x6789]
            ),
            ("2001:DB8:0:0:8:800:200C:417A", [0x2001, 0xDB8, 0, 0, 8, 0x800, 0x200C, 0x417A]),
            ("2001:DB8::8:800:200C:417A", [0x2001, 0xDB8, 0, 0, 8, 0x800, 0x200C, 0x417A]),
            ("FF01::101", [0xFF01, 0, 0, 0, 0, 0, 0, 0x101]),
            ("1:2:3:4:5:6:7::", [1, 2, 3, 4, 5, 6, 7, 0]),
            ("::2:3:4:5:6:7:8", [0, 2, 3, 4, 5, 6, 7, 8]),
            ("1:2:3::5:6:7:8", [1, 2, 3, 0, 5, 6, 7, 8]),
            ("0001:0002::", [1, 2, 0, 0, 0, 0, 0, 0]),
            ("0:0:0:0:0:0:13.1.68.3", [0, 0, 0, 0, 0, 0, 0x0D01, 0x4403]),
            ("::13.1.68.3", [0, 0, 0, 0, 0, 0, 0x0D01, 0x4403]),
            ("::FFFF:129.144.52.38", [0, 0, 0, 0, 0, 0xFFFF, 0x8190, 0x3426]),
            ("64:ff9b::192.0.2.33", [0x64, 0xFF9B, 0, 0, 0, 0, 0xC000, 0x0221]),
        ] as [(String, [UInt16])])
    func forms(text: String, groups: [UInt16]) throws {
        let address = try IPv6Address(parsing: text)
        let bytes = groups.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
        #expect(address.bytes == bytes)
        #expect(IPv6Address(bytes: bytes) == address)
    }

    @Test(
        "everything else is refused, with the reason",
        arguments: [
            ("", "a group is empty"), (":", "a group is empty"), (":::", "a group is empty"),
            ("1:", "a group is empty"), (":1", "a group is empty"), ("1:::2", "a group is empty"),
            ("::1::", "a group is empty"), ("1::2::3", "a group is empty"),
            (":1::", "a group is empty"),
            ("1:2:3:4:5:6:7", "has eight groups, this has 7"),
            ("1", "has eight groups, this has 1"),
            ("1:2:3:4:5:6:7:8:9", "has eight groups, this has 9"),
            ("1:2:3:4::5:6:7:8", "has eight groups, this has 8"), ("::12345", "group \"12345\""),
            ("::g", "group \"g\" of an IPv6 address is not one to four hexadecimal digits"),
            ("::+1", "group \"+1\""), ("::-1", "group \"-1\""), (":: 1", "group \" 1\""),
            ("::1\u{301}", "hexadecimal"), ("::\u{FF11}", "hexadecimal"), ("[::1]", "hexadecimal"),
            ("::1.2.3", "has four parts"), ("::1.2.3.4:5", "hexadecimal"),
            ("1.2.3.4", "this has 2"),
            ("::01.2.3.4", "leading zero"), ("1:2:3:4:5:6:7:1.2.3.4", "this has 9"),
        ])
    func refused(text: String, reason: String) {
        let error = #expect(throws: AddressError.self) { try IPv6Address(parsing: text) }
        #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
    }

    @Test("agrees with inet_pton on what an address is")
    func reference() {
        var random = SplitMix64(seed: 6)
        let pieces = [":", ":", "::", "0", "1:", "ffff:", "a1b2:", ":3", "1:2:3:", "1.2.3.4", "g"]
        var validCount = 0
        var wrong: [String] = []  // not #expect: it is slow in a loop
        for _ in 0..<20_000 {
            let text = random.text(of: pieces, upTo: 9)
            var expected = [UInt8](repeating: 0, count: 16)
            let isValid = inet_pton(AF_INET6, text, &expected) == 1
            validCount += isValid ? 1 : 0
            let address = try? IPv6Address(parsing: text)
            if address?.bytes != (isValid ? expected : nil) { wrong.append(text) }
        }
        #expect(wrong == [])
        #expect(validCount > 500)
    }

    @Test(
        "§2.4: knows the special ranges at both of their ends",
        arguments: [
            ("::", "unspecified"), ("::1", "loopback"), ("::2", ""), ("1::1", ""),
            ("fbff:ffff::", ""), ("fc00::", "unique-local"), ("fdff:ffff::", "unique-local"),
            ("fe00::", ""), ("fe7f::", ""), ("fe80::", "link-local"), ("febf:ffff::", "link-local"),
            ("fec0::", ""), ("feff::", ""), ("ff00::", "multicast"), ("ffff::", "multicast"),
        ])
    func ranges(text: String, kind: String) throws {
        let address = try IPv6Address(parsing: text)
        #expect(address.isUnspecified == (kind == "unspecified"))
        #expect(address.isLoopback == (kind == "loopback"))
        #expect(address.isLinkLocal == (kind == "link-local"))
        #expect(address.isMulticast == (kind == "multicast"))
        #expect(address.isUniqueLocal == (kind == "unique-local"))
    }

    @Test("bytes that are not 16 make no address")
    func wrongByteCount() {
        for count in [0, 4, 15, 17] {
            #expect(IPv6Address(bytes: Array(repeating: 1, count: count)) == nil)
        }
    }
}

@Suite("RFC 5952 §4 and §5: the canonical text of IPv6 addresses")
struct IPv6PrintingTests {
    @Test(
        "one form for every address",
        arguments: [
            ("2001:0db8::0001", "2001:db8::1"), ("2001:db8:0:0:0:0:2:1", "2001:db8::2:1"),
            ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
            ("2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
            ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"),
            ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"), ("2001:DB8::A", "2001:db8::a"),
            ("0:0:0:0:0:0:0:0", "::"), ("0:0:0:0:0:0:0:1", "::1"), ("1:0:0:0:0:0:0:0", "1::"),
            ("0:0:1:0:0:0:0:0", "0:0:1::"), ("0:1:2:3:4:5:6:7", "0:1:2:3:4:5:6:7"),
            ("1:2:3:4:5:6:7:0", "1:2:3:4:5:6:7:0"), ("::ffff:c000:201", "::ffff:192.0.2.1"),
            ("::FFFF:0:0", "::ffff:0.0.0.0"), ("::1.2.3.4", "::102:304"),
            ("::fffe:1:2", "::fffe:1:2"),
            ("1::ffff:1.2.3.4", "1::ffff:102:304"), ("FE80::1%Eth0", "fe80::1%Eth0"),
        ])
    func canonical(text: String, canonical: String) throws {
        #expect(try IPv6Address(parsing: text).description == canonical)
    }

    @Test("random addresses, many of them with zeros, survive printing and parsing")
    func roundTrip() throws {
        var random = SplitMix64(seed: 2)
        for _ in 0..<1_000 {
            let bytes = (0..<8).flatMap { _ -> [UInt8] in
                let group =
                    Bool.random(using: &random)
                    ? 0 : UInt16.random(in: .min ... .max, using: &random)
                return [UInt8(group >> 8), UInt8(truncatingIfNeeded: group)]
            }
            let zone = ["eth0", "3", nil].randomElement(using: &random) ?? nil
            let address = try #require(IPv6Address(bytes: bytes, zone: zone))
            #expect(address.bytes == bytes)
            #expect(try IPv6Address(parsing: address.description) == address)
        }
    }
}

@Suite("RFC 4007 §11: zones")
struct IPv6ZoneTests {
    @Test(
        "a zone is kept, and tells addresses apart",
        arguments: ["eth0", "3", "br-0.12%x", "a]b", "ü0"])
    func kept(zone: String) throws {
        let address = try IPv6Address(parsing: "fe80::1%\(zone)")
        #expect(address.zone == zone)
        #expect(address.description == "fe80::1%\(zone)")
        let plain = try address.withZone(nil)
        #expect(plain.zone == nil && plain != address && plain.bytes == address.bytes)
        #expect(try plain.withZone(zone) == address)
        #expect(IPv6Address(bytes: plain.bytes, zone: zone) == address)
    }

    @Test(
        "what cannot name an interface is refused",
        arguments: ["", " ", "eth 0", "a/b", "a:b", "a\n", "\0", "\u{7F}", "sixteen-bytes-xx"])
    func refused(zone: String) {
        #expect(throws: AddressError.self) { try IPv6Address(parsing: "fe80::1%\(zone)") }
        #expect(throws: AddressError.self) { try IPv6Address.loopback.withZone(zone) }
        #expect(IPv6Address(bytes: IPv6Address.loopback.bytes, zone: zone) == nil)
    }

    @Test("addresses are ordered by number, then by zone")
    func order() throws {
        let texts = ["::", "::1", "::1%a", "::1%b", "0:0:0:1::", "fe80::1%a", "fe80::2"]
        let addresses = try texts.map { try IPv6Address(parsing: $0) }
        #expect(addresses.shuffled().sorted() == addresses)
    }
}
