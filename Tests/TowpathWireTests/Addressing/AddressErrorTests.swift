import Testing
import TowpathWire

@Suite("What the errors show")
struct AddressErrorTests {
    @Test("the text is quoted, and the description is the message")
    func quoted() {
        let error = #expect(throws: AddressError.self) { try IPv4Address(parsing: "1.2.3") }
        #expect(error?.message == "\"1.2.3\": an IPv4 address has four parts, this has 3")
        #expect(error?.description == error?.message)
    }

    @Test(
        "control characters are escaped",
        arguments: [
            ("a\nb", "\"a\\nb\""), ("\u{1B}[2J", "\\u{1B}[2J"), ("\0", "\\0"),
            ("\u{85}", "\\u{0085}"),
            ("\u{202E}moc", "\\u{202E}moc"), ("\u{2028}", "\\u{2028}"), ("bücher", "\"bücher\""),
        ])
    func escaped(text: String, shown: String) {
        let error = #expect(throws: AddressError.self) { try Host(parsing: text) }
        #expect(error?.message.contains(shown) == true, "\(error?.message ?? "")")
    }

    @Test("beyond 60 characters the text is shortened, in the reason too")
    func shortened() {
        let whole = String(repeating: "x ", count: 30)
        var error = #expect(throws: AddressError.self) { try Host(parsing: whole) }
        #expect(error?.message.hasPrefix("\"\(whole)\": ") == true)
        error = #expect(throws: AddressError.self) { try Host(parsing: whole + "y") }
        #expect(error?.message.hasPrefix("\"\(whole)…\": ") == true)
        for text in [
            String(repeating: "9", count: 100_000),
            "e" + String(repeating: "\u{301}", count: 100_000),
        ] {
            error = #expect(throws: AddressError.self) { try Endpoint(parsing: "a:" + text) }
            #expect((error?.message.unicodeScalars.count ?? 0) < 200)
        }
    }
}
