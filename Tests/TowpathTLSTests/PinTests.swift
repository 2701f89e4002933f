import TestSupport
import Testing
import TowpathTLS

@Suite("Pins")
struct PinTests {
    private static let digest = "qOpdUA/vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawng="

    /// The pin of a certificate file by OpenSSL's command line.
    private static let pinCommand = """
        -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary \
        | openssl base64
        """

    @Test(
        "BR-025: a pin is what the openssl command line says, before and after a renewal",
        .enabled(if: Program.has("openssl")),
        arguments: [
            ("rsa:1024", "RSA 1024"), ("rsa:2048", "RSA 2048"), ("rsa:3072", "RSA 3072"),
            ("rsa:4096", "RSA 4096"), ("ec -pkeyopt ec_paramgen_curve:P-256", "EC P-256"),
            ("ec -pkeyopt ec_paramgen_curve:P-384", "EC P-384"),
            ("ec -pkeyopt ec_paramgen_curve:P-521", "EC P-521"), ("ed25519", "ED25519"),
            ("rsa-pss -pkeyopt rsa_keygen_bits:2048", "RSA-PSS 2048"),
            ("ec -pkeyopt ec_paramgen_curve:secp256k1", "EC secp256k1"), ("ed448", "ED448"),
        ])
    func commandLine(key: String, description: String) async throws {
        let folder = try TemporaryFolder()
        try await folder.run(
            "openssl req -x509 -newkey \(key) -nodes -keyout k.pem -out 1.pem -subj /CN=a")
        try await folder.run("openssl req -x509 -key k.pem -out 2.pem -subj /CN=b -days 90")
        let expected = try await folder.run("openssl x509 -in 1.pem \(Self.pinCommand)")
        let old = try Certificate.reading(file: folder.path("1.pem"))
        let new = try Certificate.reading(file: folder.path("2.pem"))
        #expect(old != new)
        #expect(old.map { "\($0.pin)\n" } == ["sha256/\(expected)"])
        #expect(old.map(\.pin) == new.map(\.pin))
        #expect(old.map(\.keyDescription) == [description])
        let set = PinSet(pins: new.map(\.pin), backups: [.sha256(Self.digest)])
        #expect(set.verdict(chainPins: old.map(\.pin), host: "a", now: 0) == .matched)
    }

    @Test("BR-025: a key of an unknown type has a pin that matches nothing else, and no crash")
    func unknownKey() throws {
        let known = try Identity.selfSigned().leaf
        // The number of "EC public key" ends in 2.1; 2.99 is nothing.
        let number: [UInt8] = [0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
        var der = known.der
        let place = try #require(der.firstRange(of: number))
        der[place.upperBound - 1] = 0x63
        let unknown = try Certificate(der: der)
        #expect(unknown.pin.digest.count == 32)
        #expect(unknown.pin != known.pin)
        #expect(unknown.keyDescription == "1.2.840.10045.2.99")
        #expect(!unknown.isSelfSigned)
        let set = PinSet(pins: [known.pin], backups: [.sha256(Self.digest)])
        #expect(
            set.verdict(chainPins: [unknown.pin], host: "localhost", now: 0)
                == .mismatch(offered: [unknown.pin]))
    }

    @Test(
        "the forms of OkHttp, curl and RFC 7469 are the same pin",
        arguments: ["sha256/\(digest)", "sha256//\(digest)", "pin-sha256=\"\(digest)\""])
    func forms(text: String) throws {
        let pin = try Pin(parsing: text)
        #expect(pin.description == "sha256/\(Self.digest)")
        #expect(pin.digest.count == 32)
        #expect(pin.digest.prefix(3) == [0xA8, 0xEA, 0x5D])
        #expect(pin == .sha256(Self.digest))
        #expect(pin.hashValue == Pin.sha256(Self.digest).hashValue)
    }

    @Test(
        "BR-026: a malformed pin is refused with what is wrong",
        arguments: [
            ("", "it is empty"), (digest, "put sha256/ in front of it"),
            ("sha1/qOpdUA/vKw5mDgLedCZiWwtKiyw=", "SHA-1 is too weak"),
            ("pin-sha1=\"AAAA\"", "SHA-1 is too weak"),
            (String(repeating: "aB", count: 32), "it is hexadecimal"),
            ("sha512/\(digest)", "a pin has the form"), ("SHA256/\(digest)", "a pin has the form"),
            ("pin-sha256=\(digest)", "a pin has the form"),
            ("pin-sha256=\"", "a pin has the form"), ("pin-sha256=\"\"", "there is no base64"),
            ("sha256/", "there is no base64"), ("sha256/===", "it has 0 bytes"),
            ("sha256/malformed!", "it is not base64"),
            ("sha256/\(digest)\n", "does not end in one ="),
            ("sha256/ \(digest)", "it is not base64"), ("sha256///\(digest)", "it has 33 bytes"),
            // 31 and 33 bytes.
            ("sha256/qOpdUA/vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawg==", "it has 31 bytes"),
            ("sha256/qOpdUA/vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawnh4", "it has 33 bytes"),
            // Without padding, with too much of it, and with bits beyond the last byte.
            ("sha256/qOpdUA/vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawng", "does not end in one ="),
            ("sha256/\(digest)=", "does not end in one ="),
            ("sha256/qOpdUA/vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawnh=", "bits that mean nothing"),
            ("sha256/qOpdUA_vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawng=", "it is base64url"),
        ])
    func malformed(text: String, reason: String) throws {
        let error = #expect(throws: CertificateError.self) { try Pin(parsing: text) }
        #expect(error?.description.contains(reason) ?? false, "\(error?.description ?? "")")
    }

    @Test(
        "a pin that begins with a slash is read in all forms",
        arguments: ["sha256/", "sha256//", "pin-sha256=\""])
    func slash(prefix: String) throws {
        let base64 = "/" + Self.digest.dropFirst()
        let pin = try Pin(parsing: prefix + base64 + (prefix.hasSuffix("\"") ? "\"" : ""))
        #expect(pin == .sha256(base64))
        #expect(pin.digest.first == 0xFC)
    }

    @Test("a message about a pin cannot steer a terminal")
    func escaped() throws {
        let error = #expect(throws: CertificateError.self) { try Pin(parsing: "\u{1B}[2J") }
        #expect(error?.description.contains("\u{1B}") == false)
    }

    @Test("curl's list has a semicolon between pins")
    func list() throws {
        let other = String(repeating: "A", count: 43) + "="
        let pins = try Pin.parsing(list: "sha256//\(Self.digest); sha256//\(other)")
        #expect(pins == [.sha256(Self.digest), .sha256(other)])
        #expect(pins.last?.digest == [UInt8](repeating: 0, count: 32))
        for text in ["", ";", "sha256//\(Self.digest);", "sha256//\(Self.digest);x"] {
            #expect(throws: CertificateError.self) { try Pin.parsing(list: text) }
        }
    }

    @Test("every digest is written so that it is read again")
    func roundTrip() throws {
        var random = SplitMix64(seed: 1)
        for _ in 0..<200 {
            let identity = random.next() & 0xFFFF_FFFF_FFFF
            let text = try Pin(parsing: "sha256/" + Self.base64(seed: identity))
            #expect(try Pin(parsing: text.description) == text)
        }
    }

    /// Some canonical base64 of 32 bytes.
    private static func base64(seed: UInt64) -> String {
        let symbols = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        var random = SplitMix64(seed: seed)
        let body = (0..<42).map { _ in symbols[Int(random.next() & 63)] }
        return String(body) + String(symbols[Int(random.next() & 15) * 4]) + "="
    }
}
