import Glibc
import TestSupport
import Testing
import Towpath

@Suite("Establishment: who starts it and who ends it", .timeLimit(.minutes(1)))
struct EstablishmentLifeTests {
    @Test("nothing is opened before the first use")
    func lazy() async throws {
        let target = try EstablishmentTarget()
        let connection = Connection(to: target.endpoint) { TCP() }
        #expect(connection.state == .setup)
        #expect(connection.localEndpoint == nil)
        #expect(target.accepted().isEmpty)
        try await connection.send([1] as [UInt8])
        #expect(connection.state == .ready)
        #expect(target.accepted().count == 1)
    }

    @Test("ten tasks that start it at once make one attempt")
    func together() async throws {
        let target = try EstablishmentTarget()
        let connection = Connection(to: target.endpoint) { TCP() }
        try await withThrowingTaskGroup { group in
            for _ in 0..<10 { group.addTask { try await connection.start() } }
            try await group.waitForAll()
        }
        #expect(target.accepted().count == 1)
        #expect(connection.establishmentReport?.attempts.count == 1)
    }

    @Test("ten tasks that start it hear of the same failure")
    func togetherInVain() async throws {
        let port = try DatagramClosedTCPPort()
        let connection = Connection(to: port.endpoint) { TCP() }
        let starts = (0..<10).map { _ in
            Task { try await datagramError { try await connection.start() }.code }
        }
        for start in starts { #expect(try await start.value == .connectionRefused) }
        #expect(connection.establishmentReport?.attempts.count == 1)
    }

    @Test("cancelling the first use, or its time limit, does not end what others wait for")
    func cancelFirst() async throws {
        let target = try EstablishmentTarget(answering: false)
        let connection = Connection(to: target.endpoint) { TCP() }
        let first = Task { try await connection.receive(atMost: 1) }
        await DatagramProbe.eventually { connection.state == .preparing }
        let second = Task { try await connection.start() }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        let late = try await datagramError { try await connection.start(timeout: .milliseconds(1)) }
        #expect(late.code == .timedOut)
        // There is room now: the kernel's next SYN, a second after the first, is answered.
        #expect(target.accepted().count == 1)
        try await second.value
        #expect(connection.state == .ready)
        #expect(connection.establishmentReport?.attempts.count == 1)
        #expect(target.accepted().count == 1)
    }

    @Test(
        "a connection that is closed while it opens frees its sockets and tells all who wait",
        arguments: ["close", "abort", "drop"], [EstablishmentPhase.connecting, .resolving])
    func endWhileOpening(way: String, phase: EstablishmentPhase) async throws {
        let address = "127.0.0.\(61 + EstablishmentPhase.number(way, phase))"
        let target = try EstablishmentTarget(answering: false)
        let parameters = Parameters().localEndpoint(.udp(address))
        let endpoint: Endpoint =
            phase == .connecting ? target.endpoint : .named("slow.invalid", target.port)
        var connection: Connection<TCP>? = Connection(to: endpoint, parameters: parameters) {
            TCP()
        }
        let states = Inbox<ConnectionState>()
        connection?.onStateUpdate { states.send($0) }
        if way == "drop" {
            // Only its own attempt knows of it from here on.
            let error = try await datagramError {
                try await connection?.start(timeout: .milliseconds(1))
            }
            #expect(error.code == .timedOut || phase == .resolving)
            if phase == .connecting {
                #expect(EstablishmentLocal.sockets(address).count == 1)
            }
            connection = nil
        } else {
            let start = Task { [connection] in
                try await datagramError { try await connection?.start() }.code
            }
            await DatagramProbe.eventually {
                phase == .connecting
                    ? !EstablishmentLocal.sockets(address).isEmpty
                    : connection?.state != .setup
            }
            if way == "close" { await connection?.close() } else { connection?.abort() }
            let code = try await start.value
            #expect(code == .closed || phase == .resolving)
        }
        await DatagramProbe.eventually { EstablishmentLocal.sockets(address).isEmpty }
        #expect(try await states.next() == .setup)
        #expect(try await states.next() == .preparing)
        let last = try await states.next()
        #expect(last == .cancelled || phase == .resolving)
        #expect(target.accepted().count == 1, "the one that fills the queue")
    }

    @Test("the states come once and in order, to every observer")
    func states() async throws {
        let target = try EstablishmentTarget()
        let connection = Connection(to: target.endpoint) { TCP() }
        let early = connection.states
        try await connection.start()
        let late = connection.states
        connection.abort()
        var seen: [ConnectionState] = []
        for await state in early { seen.append(state) }
        #expect(seen == [.setup, .preparing, .ready, .cancelled])
        seen = []
        for await state in late { seen.append(state) }
        #expect(seen == [.ready, .cancelled])
    }

    @Test("a connection that failed stays so, and every use says why")
    func failed() async throws {
        let port = try DatagramClosedTCPPort()
        let connection = Connection(to: port.endpoint) { TCP() }
        let states = connection.states
        let uses: [() async throws -> Void] = [
            { try await connection.start() },
            { try await connection.send([1] as [UInt8]) },
            { _ = try await connection.receive(atMost: 1) },
            { try await connection.finish() },
        ]
        for use in uses { #expect(try await datagramError(use).code == .connectionRefused) }
        await connection.close()
        var seen: [String] = []
        for await state in states { seen.append(String("\(state)".prefix { $0 != " " })) }
        #expect(seen == ["setup", "preparing", "failed"])
    }

    @Test("of a UDP connection the opening is the same: one attempt, however many begin it")
    func datagrams() async throws {
        let peer = try DatagramSocket()
        let connection = Connection(to: try peer.endpoint) { UDP() }
        try await withThrowingTaskGroup { group in
            for number in 0..<10 as Range<UInt8> {
                group.addTask { try await connection.send([number]) }
            }
            try await group.waitForAll()
        }
        #expect(Set(try await peer.receive(count: 10)) == Set((0..<10).map { [$0] }))
        let report = try #require(connection.establishmentReport)
        expectConsistent(report, winner: try peer.endpoint)
        #expect(report.attempts.count == 1)
    }
}

enum EstablishmentPhase: Int, Sendable {
    case connecting, resolving

    /// Another for each case of a test.
    static func number(_ way: String, _ phase: EstablishmentPhase) -> Int {
        (way == "close" ? 0 : way == "abort" ? 2 : 4) + phase.rawValue
    }
}
