import Glibc
import Testing
import Towpath

@Suite("Establishment: attempts", .timeLimit(.minutes(1)))
struct EstablishmentAttemptTests {
    /// Addresses of loopback at which the same port is closed.
    private func addresses(_ last: ClosedRange<UInt8>) -> [IPAddress] {
        last.map { .v4(IPv4Address(127, 0, 0, $0)) }
    }

    private func connection(
        _ addresses: [IPAddress], _ port: UInt16, timeout: Duration = .seconds(50)
    ) -> Connection<TCP> {
        let parameters = Parameters().resolve("many.test", to: addresses)
        return Connection(to: .named("many.test", port), parameters: parameters) {
            TCP().connectionTimeout(timeout)
        }
    }

    @Test("one refused attempt is the error itself")
    func refusedOnce() async throws {
        let port = try DatagramClosedTCPPort()
        let connection = Connection(to: port.endpoint) { TCP() }
        let error = try await datagramError { try await connection.start() }
        #expect(error.code == .connectionRefused)
        #expect(error.stage == .connect)
        #expect(error.cause == .system(errno: ECONNREFUSED, call: "connect"))
        #expect(error.message.contains("\(port.endpoint)"))
        let report = try #require(connection.establishmentReport)
        #expect(report.attempts.map(\.error?.code) == [.connectionRefused])
        #expect(report.attempts.allSatisfy { !$0.succeeded && $0.duration != nil })
    }

    @Test("where all attempts fail, one error lists each with its reason")
    func refused() async throws {
        let port = try DatagramClosedTCPPort()
        let others = addresses(40...43)
        let connection = connection([.v4(.loopback)] + others, port.port)
        let error = try await datagramError { try await connection.start() }
        #expect(error.code == .connectionRefused)
        for address in others {
            #expect(error.message.contains("\(address):\(port.port): refused"), "\(error.message)")
        }
        let report = try #require(connection.establishmentReport)
        #expect(report.attempts.count == 5)
        #expect(report.attempts.allSatisfy { $0.error?.code == .connectionRefused })
    }

    @Test("BR-007: after a refusal the next attempt starts at once")
    func noDelayAfterRefusal() async throws {
        let target = try EstablishmentTarget()
        // With 250 ms before each of them, 100 attempts would need 25 s.
        let connection = connection(
            addresses(100...199) + [.v4(.loopback)], target.port, timeout: .seconds(10))
        try await connection.start()
        let report = try #require(connection.establishmentReport)
        #expect(report.attempts.count == 101)
        expectConsistent(report, winner: target.endpoint)
    }

    @Test("BR-007: an attempt without an answer is not waited for, nor given up")
    func unanswered() async throws {
        let silent = try EstablishmentTarget(.udp("127.0.0.50"), answering: false)
        let target = try EstablishmentTarget(.udp("127.0.0.49", silent.port))
        let connection = connection(addresses(50...50) + addresses(49...49), silent.port)
        try await connection.start()
        let report = try #require(connection.establishmentReport)
        expectConsistent(report, winner: target.endpoint)
        #expect(report.attempts.count == 2)
        // RFC 8305 §5: the Connection Attempt Delay, which the first attempt outlives.
        #expect(report.attempts[1].start >= .milliseconds(250))
        #expect(report.attempts[0].duration == nil)
        #expect(report.attempts[0].error == nil)
    }

    @Test("BR-007: where nobody answers, one error comes in the end and lists every attempt")
    func nobodyAnswers() async throws {
        let first = try EstablishmentTarget(.udp("127.0.0.51"), answering: false)
        let silent =
            [first]
            + (try (52...54).map {
                try EstablishmentTarget(.udp("127.0.0.\($0)", first.port), answering: false)
            })
        let connection = connection(
            addresses(51...54), first.port, timeout: .seconds(4))
        let error = try await datagramError { try await connection.start() }
        #expect(error.code == .timedOut)
        #expect(error.stage == .connect)
        for target in silent {
            #expect(error.message.contains("\(target.endpoint): no answer"), "\(error.message)")
        }
        let report = try #require(connection.establishmentReport)
        #expect(report.attempts.map(\.endpoint) == silent.map(\.endpoint))
        #expect(report.duration >= .seconds(4))
    }

    @Test("the losers of a race are closed")
    func losers() async throws {
        let silent = try EstablishmentTarget(.udp("127.0.0.55"), answering: false)
        let target = try EstablishmentTarget(.udp("127.0.0.59", silent.port))
        let local = Endpoint.udp("127.0.0.56")
        let parameters = Parameters().localEndpoint(local)
            .resolve("race.test", to: addresses(55...55) + addresses(59...59))
        let connection = Connection(to: .named("race.test", target.port), parameters: parameters) {
            TCP()
        }
        try await connection.start()
        let own = try #require(connection.localEndpoint)
        #expect(EstablishmentLocal.sockets("127.0.0.56") == [own])
    }

    @Test("R-01: a socket that got itself as its peer counts as refused")
    func selfConnection() async throws {
        // Nobody else binds ports of this address.
        let free = try DatagramClosedTCPPort(.udp("127.0.0.57"))
        let endpoint = Endpoint.udp("127.0.0.58", free.port)
        let connection = Connection(to: endpoint, parameters: Parameters().localEndpoint(endpoint))
        {
            TCP()
        }
        let error = try await datagramError { try await connection.start() }
        #expect(error.code == .connectionRefused)
        #expect(connection.establishmentReport?.attempts.map(\.succeeded) == [false])
        #expect(EstablishmentLocal.sockets("127.0.0.58").isEmpty)
    }

    @Test("the connection timeout ends the opening, and says what was tried")
    func connectionTimeout() async throws {
        let silent = try EstablishmentTarget(answering: false)
        let connection = Connection(to: silent.endpoint) {
            TCP().connectionTimeout(.milliseconds(100))
        }
        let error = try await datagramError { _ = try await connection.receive(atMost: 1) }
        #expect(error.code == .timedOut)
        #expect(error.message.contains("\(silent.endpoint): no answer"))
        #expect(connection.state == .failed(error))
        let later = try await datagramError { try await connection.send([1] as [UInt8]) }
        #expect(later.code == .timedOut)
    }

    @Test("for UDP a host that no route leads to fails the attempt, and the next is used")
    func datagramRoute() async throws {
        let peer = try DatagramSocket()
        let port = try #require(try peer.endpoint.port)
        // An address of one interface, without saying which.
        let nowhere = try IPAddress(parsing: "ff01::1")
        let parameters = Parameters().resolve("two.test", to: [nowhere, .v4(.loopback)])
        let connection = Connection(to: .named("two.test", port), parameters: parameters) { UDP() }
        try await connection.send([1] as [UInt8])
        #expect(try await peer.receive().bytes == [1])
        let report = try #require(connection.establishmentReport)
        #expect(report.attempts.map(\.succeeded) == [false, true])
        #expect(report.attempts.first?.error != nil)
    }
}

enum EstablishmentLocal {
    /// The endpoints of this process's sockets at an address of loopback that only one test uses.
    static func sockets(_ address: String) -> [Endpoint] {
        let host = Endpoint.udp(address).host
        return DatagramProbe.numbers { $0.host == host }.compactMap {
            try? DatagramSocket.endpoint(of: $0, getsockname)
        }
    }
}
