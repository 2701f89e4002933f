import TestSupport
import Testing
import TowpathWire

@Suite("Endpoints")
struct EndpointTests {
    static let name = Host.name("example.com")
    static let linkLocal =
        IPv6Address(bytes: [0xFE, 0x80] + Array(repeating: 0, count: 13) + [1], zone: "eth0")
        ?? .any
    static let longName = String(repeating: "x", count: 107)

    @Test(
        "one text for each endpoint, read and printed",
        arguments: [
            ("example.com:443", .hostPort(host: name, port: 443)),
            ("example.com:0", .hostPort(host: name, port: 0)),
            ("1.2.3.4:80", .hostPort(host: .ipv4(IPv4Address(1, 2, 3, 4)), port: 80)),
            ("[::1]:65535", .hostPort(host: .ipv6(.loopback), port: 65_535)),
            ("[fe80::1%eth0]:80", .hostPort(host: .ipv6(linkLocal), port: 80)),
            ("unix:/run/a.sock", .unix("/run/a.sock")), ("unix:a:b", .unix("a:b")),
            ("unix:./@a", .unix("./@a")), ("unix:ü", .unix("ü")), ("unix:@name", .abstract("name")),
            ("unix:@@", .abstract("@")), ("unix:@\0a", .abstract("\0a")),
            ("unix:@80", .abstract("80")),
            ("unix:80", .hostPort(host: .name("unix"), port: 80)),
            ("unix:\(longName)", .unix(longName)), ("unix:@\(longName)", .abstract(longName)),
        ] as [(String, Endpoint)])
    func text(text: String, endpoint: Endpoint) throws {
        #expect(try Endpoint(parsing: text) == endpoint)
        #expect(endpoint.description == text)
    }

    @Test(
        "other texts that are read",
        arguments: [
            ("/run/a.sock", .unix("/run/a.sock")), ("./a", .unix("./a")),
            ("@name", .abstract("name")),
            ("[0:0::1]:0080", .hostPort(host: .ipv6(.loopback), port: 80)),
            ("/a:80", .unix("/a:80")), ("@a:80", .abstract("a:80")),
        ] as [(String, Endpoint)])
    func otherTexts(text: String, endpoint: Endpoint) throws {
        #expect(try Endpoint(parsing: text) == endpoint)
        #expect(try Endpoint(parsing: text, defaultPort: 1) == endpoint)
        #expect(try Endpoint.parseListener(text) == endpoint)
    }

    @Test(
        "a relative path that would read as something else is printed with ./",
        arguments: ["@a", "80"])
    func ambiguousPath(path: String) throws {
        #expect(Endpoint.unix(path).description == "unix:./\(path)")
        #expect(try Endpoint(parsing: Endpoint.unix(path).description) == .unix("./\(path)"))
    }

    @Test(
        "what is no endpoint is refused, with what to write instead",
        arguments: [
            ("example.com", "missing port: write HOST:PORT"),
            ("example.com:", "missing port: write HOST:PORT"),
            ("1.2.3.4", "missing port: write HOST:PORT"), ("8080", "four parts"),
            ("", "missing host"),
            (":80", "missing host: write HOST:PORT"), ("::1", "missing port: write [ADDRESS]:PORT"),
            ("[::1]", "missing port: write [ADDRESS]:PORT"), ("[::1]:", "missing port"),
            ("::1:80", "\"::1:80\": ambiguous: write [::1]:80"),
            ("fe80::1%e:80", "ambiguous: write [fe80::1%e]:80"),
            ("1:2:3:4:5:6:7:8:80", "write [1:2:3:4:5:6:7:8]:80"), ("2001:db8::a:b", "missing port"),
            ("a:70000", "port 70000 is out of range (0 to 65535)"), ("a:65536", "out of range"),
            ("a:-1", "port \"-1\" is not a number"), ("a:+1", "not a number"),
            ("a: 1", "not a number"),
            ("a:1\u{301}", "not a number"), ("a:b:80", "IPv6"),
            ("http://a", "port \"//a\" is not a number"),
            ("[::1]80", "write [ADDRESS]:PORT"), ("[::1", "write [ADDRESS]:PORT"),
            ("[", "write [ADDRESS]"),
            ("[::1]x:80", "write [ADDRESS]:PORT"), ("[::1]:80:90", "write [ADDRESS]:PORT"),
            ("[a]:80", "IPv6"), ("[1.2.3.4]:80", "IPv6"), ("[]:80", "IPv6"),
            ("[::1%]:80", "a zone is"),
            ("256.1.1.1:80", "is above 255"), ("bücher.example:80", "punycode"),
            ("a b:80", "letters"),
            ("unix:", "1 to 107 bytes, this has 0"), ("unix:@", "this has 0"), ("@", "this has 0"),
            ("/a\0b", "has no NUL"), ("unix:\(longName)x", "1 to 107 bytes, this has 108"),
            ("@\(longName)x", "this has 108"), ("../a", "letters"), ("~/a", "letters"),
        ])
    func refused(text: String, reason: String) {
        let error = #expect(throws: AddressError.self) { try Endpoint(parsing: text) }
        #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
    }

    @Test(
        "a host alone is enough where a port is implied",
        arguments: [
            ("example.com", name, 443), ("example.com:80", name, 80),
            ("1.2.3.4", .ipv4(IPv4Address(1, 2, 3, 4)), 443), ("::1", .ipv6(.loopback), 443),
            ("[::1]", .ipv6(.loopback), 443), ("[::1]:80", .ipv6(.loopback), 80),
            ("fe80::1%eth0", .ipv6(linkLocal), 443),
            (
                "::1:80",
                .ipv6(IPv6Address(bytes: Array(repeating: 0, count: 13) + [1, 0, 0x80]) ?? .any),
                443
            ),
        ] as [(String, Host, UInt16)])
    func defaultPort(text: String, host: Host, port: UInt16) throws {
        let endpoint = try Endpoint(parsing: text, defaultPort: 443)
        #expect(endpoint.host == host)
        #expect(endpoint.port == port)
    }

    @Test(
        "a default port excuses nothing else",
        arguments: ["", "a:", ":80", "[::1", "::1::", "a b", "[a]"])
    func defaultPortRefused(text: String) {
        #expect(throws: AddressError.self) { try Endpoint(parsing: text, defaultPort: 443) }
    }

    @Test(
        "a listener may leave the address out",
        arguments: [
            ("80", .port(80)), (":80", .port(80)), ("*:80", .port(80)), ("0", .port(0)),
            ("[::]:80", .port(80)), ("0.0.0.0:80", .hostPort(host: .ipv4(.any), port: 80)),
            ("[::1]:80", .hostPort(host: .ipv6(.loopback), port: 80)), ("unix:@a", .abstract("a")),
            ("127.0.0.1:0", .hostPort(host: .ipv4(.loopback), port: 0)),
        ] as [(String, Endpoint)])
    func listener(text: String, endpoint: Endpoint) throws {
        #expect(try Endpoint.parseListener(text) == endpoint)
    }

    @Test(
        "what a listener cannot be bound to is refused",
        arguments: [
            ("localhost:80", "a listener takes an address such as 127.0.0.1, not a name"),
            ("70000", "port 70000 is out of range"), (":x", "port \"x\" is not a number"),
            ("*:", "missing port"),
            ("", "missing host"), ("*", "letters"), ("::1", "missing port"),
            ("1.2.3.4", "missing port"),
            ("::1:80", "ambiguous"), ("unix:", "this has 0"),
        ])
    func listenerRefused(text: String, reason: String) {
        let error = #expect(throws: AddressError.self) { try Endpoint.parseListener(text) }
        #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
    }

    @Test("a socket has neither host nor port", arguments: [Endpoint.unix("/a"), .abstract("a")])
    func noHost(endpoint: Endpoint) {
        #expect(endpoint.host == nil)
        #expect(endpoint.port == nil)
    }

    @Test(
        "any text gives a value that survives printing and parsing, or an AddressError",
        arguments: 0..<8)
    func anyText(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let pieces = [
            "unix", ":", ":", "::", "[", "]", "%", "@", "/", ".", "*", "-", "_", "0", "1", "80",
            "255", "65536",
            "1.2.3.4", "fe80::1", "ffff", "a", "example.com", "0x", " ", "\0", "\n", "\u{301}", "ü",
            "\u{1F600}", "\"",
        ]
        var validCount = 0
        var wrong: [String] = []  // not #expect: it is slow in a loop
        for _ in 0..<1_500 {
            let text = random.text(of: pieces, upTo: 8)
            let results = [
                Result { try Endpoint(parsing: text) },
                Result { try Endpoint(parsing: text, defaultPort: 1) },
                Result { try Endpoint.parseListener(text) },
            ]
            for result in results {
                switch result {
                case .success(let endpoint):
                    validCount += 1
                    let again = try Endpoint(parsing: endpoint.description)
                    if again != endpoint { wrong.append(text) }
                case .failure(let error):
                    guard error is AddressError else { throw error }
                }
            }
            if let host = try? Host(parsing: text) {
                if try Host(parsing: host.description) != host { wrong.append(text) }
            }
        }
        #expect(wrong == [])
        #expect(validCount > 150)
    }

    @Test("any bytes, as a text, give a value or an AddressError", arguments: 0..<4)
    func anyBytes(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<1_000 {
            let count = Int.random(in: 0...40, using: &random)
            let bytes = (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }
            let text = String(decoding: bytes, as: UTF8.self)
            do {
                _ = try Endpoint(parsing: text[...])
            } catch {
                #expect(error.message.utf8.first == UInt8(ascii: "\""))
            }
        }
    }
}
