import Glibc
import TestSupport
import Testing
import TowpathWire

@Suite("IPv4 addresses, dotted decimal")
struct IPv4AddressTests {
    @Test(
        "parses, prints and gives bytes in network order",
        arguments: [
            ("0.0.0.0", UInt32(0)), ("127.0.0.1", 0x7F00_0001), ("1.2.3.4", 0x0102_0304),
            ("255.255.255.255", 0xFFFF_FFFF), ("192.168.10.200", 0xC0A8_0AC8),
        ])
    func text(text: String, number: UInt32) throws {
        let address = try IPv4Address(parsing: text)
        #expect(address.rawValue == number)
        #expect(address.description == text)
        #expect(address.bytes == text.split(separator: ".").compactMap { UInt8($0) })
    }

    @Test(
        "refuses every other form, and says why",
        arguments: [
            ("", "has four parts, this has 1"),
            ("1.2.3", "an IPv4 address has four parts, this has 3"),
            ("1.2.3.4.5", "this has 5"), ("127.1", "this has 2"), ("1.2.3.", "part \"\" of"),
            ("0127.0.0.1", "part \"0127\" of an IPv4 address has a leading zero"),
            ("1.2.3.00", "leading zero"),
            ("256.1.1.1", "part \"256\" of an IPv4 address is above 255"),
            ("1.2.3.99999999999999999999", "is above 255"), ("+1.2.3.4", "is not a number"),
            ("-1.2.3.4", "is not a number"), (" 1.2.3.4", "is not a number"),
            ("1.2.3.4\n", "is not a number"), ("1.2.3.٤", "is not a number"),
            ("1.2.3.4\u{301}", "is not a number"), ("0x7f.0.0.1", "is not a number"),
        ])
    func refused(text: String, reason: String) {
        let error = #expect(throws: AddressError.self) { try IPv4Address(parsing: text) }
        #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
    }

    @Test("agrees with inet_pton on what an address is")
    func reference() {
        var random = SplitMix64(seed: 4)
        let pieces = ["1", "0", "25", "7", ".", ".", "1.2", ".3.4", "-"]
        var wrong: [String] = []  // not #expect: it is slow in a loop
        for _ in 0..<20_000 {
            let text = random.text(of: pieces, upTo: 8)
            var expected = in_addr()
            let isValid = inet_pton(AF_INET, text, &expected) == 1
            let address = try? IPv4Address(parsing: text)
            let number = isValid ? UInt32(bigEndian: expected.s_addr) : nil
            if address?.rawValue != number { wrong.append(text) }
        }
        #expect(wrong == [])
    }

    @Test("random addresses survive printing and parsing")
    func roundTrip() throws {
        var random = SplitMix64(seed: 1)
        for _ in 0..<500 {
            let address = IPv4Address(rawValue: random.next(upperBound: UInt32.max))
            #expect(try IPv4Address(parsing: address.description) == address)
            let bytes = address.bytes
            #expect(IPv4Address(bytes[0], bytes[1], bytes[2], bytes[3]) == address)
        }
    }

    @Test(
        "knows the special ranges at both of their ends",
        arguments: [
            ("0.0.0.0", "unspecified"), ("0.0.0.1", ""), ("126.255.255.255", ""),
            ("127.0.0.0", "loopback"), ("127.255.255.255", "loopback"), ("128.0.0.0", ""),
            ("169.253.255.255", ""), ("169.254.0.0", "link-local"),
            ("169.254.255.255", "link-local"),
            ("169.255.0.0", ""), ("223.255.255.255", ""), ("224.0.0.0", "multicast"),
            ("239.255.255.255", "multicast"), ("240.0.0.0", ""), ("9.255.255.255", ""),
            ("10.0.0.0", "private"), ("10.255.255.255", "private"), ("11.0.0.0", ""),
            ("172.15.255.255", ""), ("172.16.0.0", "private"), ("172.31.255.255", "private"),
            ("172.32.0.0", ""), ("192.167.255.255", ""), ("192.168.0.0", "private"),
            ("192.168.255.255", "private"), ("192.169.0.0", ""), ("255.255.255.255", ""),
        ])
    func ranges(text: String, kind: String) throws {
        let address = try IPv4Address(parsing: text)
        #expect(address.isUnspecified == (kind == "unspecified"))
        #expect(address.isLoopback == (kind == "loopback"))
        #expect(address.isLinkLocal == (kind == "link-local"))
        #expect(address.isMulticast == (kind == "multicast"))
        #expect(address.isPrivate == (kind == "private"))
    }

    @Test("is ordered by number, and has its well-known values")
    func order() {
        let addresses: [IPv4Address] = [.any, IPv4Address(9, 255, 0, 0), .loopback, .broadcast]
        #expect(addresses.shuffled().sorted() == addresses)
        #expect(
            addresses.map(\.description) == [
                "0.0.0.0", "9.255.0.0", "127.0.0.1", "255.255.255.255",
            ])
    }
}
