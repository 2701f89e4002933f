import Glibc
import Testing
import Towpath

@Suite("Establishment: names and addresses", .timeLimit(.minutes(1)))
struct EstablishmentTests {
    @Test("an address needs no look-up, and the report says so", arguments: [false, true])
    func literal(isIPv6: Bool) async throws {
        let target = try EstablishmentTarget(isIPv6 ? .udp6() : .udp4())
        let connection = Connection(to: target.endpoint) { TCP() }
        #expect(connection.establishmentReport == nil)
        #expect(connection.remoteEndpoint == target.endpoint)
        try await connection.start()
        let report = try #require(connection.establishmentReport)
        #expect(report.resolutions.map(\.source) == [.literal])
        #expect(report.resolutions.map(\.family) == [isIPv6 ? .ipv6 : .ipv4])
        #expect(report.resolutions[0].addresses == [target.endpoint.host?.address])
        #expect(report.resolutions[0].error == nil)
        expectConsistent(report, winner: target.endpoint)
        #expect(connection.remoteEndpoint == target.endpoint)
        #expect(report.attempts.count == 1)
    }

    @Test(
        "a name is looked up in the parameters first, however it is written",
        arguments: ["www.example.test", "WWW.Example.TEST", "www.example.test."])
    func parameters(name: String) async throws {
        let target = try EstablishmentTarget()
        for given in ["www.example.test", "Www.Example.Test", "www.example.test."] {
            let parameters = Parameters().resolve(given, to: [.v4(.loopback)])
            let connection = Connection(to: .named(name, target.port), parameters: parameters) {
                TCP()
            }
            try await connection.start()
            let report = try #require(connection.establishmentReport)
            #expect(report.resolutions.map(\.source) == [.parameters])
            #expect(report.resolutions[0].addresses == [.v4(.loopback)])
            expectConsistent(report, winner: target.endpoint)
        }
    }

    @Test("a name in the parameters without addresses is not found")
    func emptyParameters() async throws {
        let parameters = Parameters().resolve("www.example.test", to: [])
        let connection = Connection(to: "www.example.test:80", parameters: parameters) { TCP() }
        let error = try await datagramError { try await connection.start() }
        #expect(error.code == .nameNotFound)
        #expect(error.stage == .resolve)
        #expect(connection.establishmentReport?.attempts.isEmpty == true)
    }

    @Test("localhost is looked up by the system, one look-up per family")
    func localhost() async throws {
        let target = try EstablishmentTarget()
        let connection = Connection(to: .named("localhost", target.port)) { TCP() }
        try await connection.start()
        let report = try #require(connection.establishmentReport)
        #expect(report.resolutions.contains { $0.family == .ipv4 })
        for resolution in report.resolutions {
            #expect(resolution.source == .system)
            #expect(resolution.addresses.allSatisfy { $0.family == resolution.family })
            #expect(resolution.addresses.isEmpty == (resolution.error != nil))
            #expect(resolution.duration <= report.duration)
        }
        expectConsistent(report, winner: target.endpoint)
    }

    @Test("a name that is nobody's is not found, or no server could say so")
    func unknown() async throws {
        let connection = Connection(to: .named("nobody.invalid", 80)) { TCP() }
        let error = try await datagramError { try await connection.start() }
        // Without a name server RFC 6761's `invalid` cannot be told from others.
        #expect([.nameNotFound, .resolverUnavailable].contains(error.code))
        #expect(error.stage == .resolve)
        #expect(error.message.contains("nobody.invalid"))
        #expect(connection.state == .failed(error))
        let report = try #require(connection.establishmentReport)
        #expect(report.attempts.isEmpty)
        #expect(report.resolutions.count == 2)
        #expect(report.resolutions.allSatisfy { $0.error != nil && $0.addresses.isEmpty })
    }

    @Test(
        "a name put together by hand is checked before anybody is asked",
        arguments: ["", "a b", "127.1", "0x7f.1", "exa\u{0}mple", "ä.example", "-\n", "a..b"])
    func badName(name: String) async throws {
        let connection = Connection(to: .named(name, 80)) { TCP() }
        let error = try await datagramError { try await connection.start() }
        #expect(error.code == .invalidEndpoint)
        #expect(error.stage == .setup)
        #expect(connection.establishmentReport?.resolutions.isEmpty == true)
    }

    @Test("a zone that is no interface's is told, in the attempt too")
    func wrongZone() async throws {
        let parameters = Parameters().waitsForConnectivity(false)
        let connection = Connection(to: "[fe80::1%nosuch0]:80", parameters: parameters) { TCP() }
        let error = try await datagramError { try await connection.start() }
        #expect(error.code == .unreachable)
        #expect(error.message.contains("zone"))
        let report = try #require(connection.establishmentReport)
        #expect(report.attempts.map(\.error) == [error])
    }

    @Test(
        "a text that is no endpoint fails the start, with what is wrong with it",
        arguments: [
            ("localhost:70000", "out of range"), ("localhost", "port"), (":::", "\":::\""),
            ("[::1]", "port"), ("256.1.1.1:80", "above 255"), ("", "\"\""),
        ])
    func badText(text: String, reason: String) async throws {
        let connection = Connection(to: text) { TCP() }
        #expect(connection.state == .setup)
        let error = try await datagramError { try await connection.start() }
        #expect(error.code == .invalidEndpoint)
        #expect(error.message.contains(reason), "\(error.message)")
        #expect(connection.state == .failed(error))
        let again = try await datagramError { _ = try await connection.receive() }
        #expect(again.code == .invalidEndpoint)
        #expect(connection.remoteEndpoint == nil)
        await connection.close()
    }

    @Test("only addresses of the chosen version are used", arguments: [AddressFamily.ipv4, .ipv6])
    func version(family: AddressFamily) async throws {
        let four = try EstablishmentTarget()
        // The same port of the other address, so that both could answer.
        let six = try? EstablishmentTarget(.udp6(four.port))
        let parameters = Parameters().ipVersion(family)
            .resolve("both.test", to: [.v6(.loopback), .v4(.loopback)])
        for name in ["both.test", "localhost"] {
            let connection = Connection(to: .named(name, four.port), parameters: parameters) {
                TCP()
            }
            do { try await connection.start() } catch {
                // Nobody listens on IPv6 if somebody else had the port there.
                #expect(family == .ipv6 && (six == nil || name == "localhost"))
            }
            let report = try #require(connection.establishmentReport)
            #expect(report.resolutions.allSatisfy { $0.family == family })
            #expect(report.attempts.allSatisfy { $0.endpoint.host?.address?.family == family })
        }
        let other: Endpoint = family == .ipv4 ? .udp6(four.port) : four.endpoint
        let refused = Connection(to: other, parameters: parameters) { TCP() }
        let error = try await datagramError { try await refused.start() }
        #expect(error.code == .nameNotFound)
        #expect(error.message.contains("family"))
    }

    @Test("a mapped address and its IPv4 form are tried once")
    func duplicates() async throws {
        let parameters = Parameters().resolve(
            "twice.test",
            to: [.v4(.loopback), .v6(IPv6Address(ipv4Mapped: .loopback)), .v4(.loopback)])
        let port = try DatagramClosedTCPPort()
        let connection = Connection(to: .named("twice.test", port.port), parameters: parameters) {
            TCP()
        }
        _ = try await datagramError { try await connection.start() }
        #expect(connection.establishmentReport?.attempts.count == 1)
    }
}
