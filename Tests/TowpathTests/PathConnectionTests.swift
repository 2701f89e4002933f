import TestSupport
import Testing
import Towpath
import TowpathReactor

/// Connections without a path wait for one. Inside a namespace, since the loops' sockets are this
/// process's.
@Suite("Connections and their paths", .timeLimit(.minutes(2)))
struct PathConnectionTests {
    @Test("a connection without a path waits, and opens once there is one")
    func waits() async throws {
        guard await NetworkNamespace.isPossible("waiting for a path") else { return }
        try await NetworkNamespace().run("insideWaits")
    }

    @Test func insideWaits() async throws {
        guard NetworkNamespace.isInside() else { return }
        let listener = try await Listener(on: .port(0)) { TCP() }
        try await serving(listener, echo) {
            let target = Endpoint.udp("192.0.2.9", listener.port)
            let connection = Connection(to: target) { TCP() }
            let states = Inbox<ConnectionState>()
            connection.onStateUpdate { states.send($0) }
            let sending = Task { try await connection.send("hello".utf8) }
            #expect(try await states.next(3).map(Self.name) == ["setup", "preparing", "waiting"])
            #expect(Self.name(connection.state) == "waiting")
            #expect(connection.currentPath.status == .unsatisfied)
            // Nobody else waits.
            let hasty = Parameters().waitsForConnectivity(false)
            let error = await Streams.failure {
                try await Connection(to: target, parameters: hasty) { TCP() }.start()
            }
            #expect(error?.code == .unreachable)
            let timed = await Streams.failure {
                try await Connection(to: target) {
                    TCP().connectionTimeout(.milliseconds(50))
                }.start()
            }
            #expect(timed?.code == .timedOut)
            #expect(timed?.message.contains("no path") == true)
            // A route, and at once an address to leave from; the loopback answers for all of them.
            try await Program.succeed(["ip", "addr", "add", "192.0.2.9/32", "dev", "lo"])
            try await sending.value
            #expect(try await states.next(2).map(Self.name) == ["preparing", "ready"])
            await connection.close()
        }
    }

    private static func name(_ state: ConnectionState) -> String {
        String(state.description.prefix { $0 != " " })
    }

    @Test("a name waits for a name server, and an interface for its coming")
    func interface() async throws {
        guard await NetworkNamespace.isPossible("waiting for an interface") else { return }
        try await NetworkNamespace().run("insideInterface")
    }

    @Test func insideInterface() async throws {
        guard NetworkNamespace.isInside() else { return }
        let listener = try await Listener(on: .port(0)) { TCP() }
        try await serving(listener, echo) {
            let parameters = Parameters().requiredInterface("w0")
            let connection = Connection(
                to: .udp("192.0.2.1", listener.port), parameters: parameters
            ) { TCP().connectionTimeout(.seconds(20)) }
            let states = Inbox<ConnectionState>()
            connection.onStateUpdate { states.send($0) }
            let start = Task { try await connection.start() }
            let waiting = try await states.next(3).last
            #expect(waiting.map(Self.name) == "waiting")
            #expect(waiting?.description.contains("w0") == true)
            start.cancel()
            connection.abort()
            #expect(connection.state == .cancelled)
            _ = await start.result
        }
    }

    @Test("a required type of interface chooses it; a prohibited one leaves it out")
    func types() async throws {
        guard await NetworkNamespace.isPossible("types of interfaces") else { return }
        try await NetworkNamespace().run("insideTypes")
    }

    @Test func insideTypes() async throws {
        guard NetworkNamespace.isInside() else { return }
        for command in [
            "link add w0 type veth peer name w1", "link set w0 up", "link set w1 up",
            "addr add 192.0.2.1/24 dev w0",
        ] {
            try await Program.succeed(["ip"] + command.split(separator: " ").map(String.init))
        }
        let target = Endpoint.udp("192.0.2.9", 9)
        let wired = Connection(
            to: target, parameters: Parameters().requiredInterfaceType(.wiredEthernet)
        ) { UDP() }
        try await wired.start()
        #expect(wired.localEndpoint?.host == (try Endpoint(parsing: "192.0.2.1:1").host))
        let bound = try wired.withSocket { socket throws(SystemError) in
            try socket.boundInterface()
        }
        #expect(bound == "w0")
        for parameters in [
            Parameters().requiredInterfaceType(.wifi),
            Parameters().prohibitedInterfaceTypes([.wiredEthernet]),
            Parameters().prohibitedInterfaces(["w0"]),
            Parameters().interfaceHints(expensive: ["w*"]).expensivePathsProhibited(true),
            Parameters().interfaceHints(constrained: ["w0"]).constrainedPathsProhibited(true),
        ] {
            let error = await Streams.failure {
                try await Connection(
                    to: target, parameters: parameters.waitsForConnectivity(false)
                ) { UDP() }.start()
            }
            #expect(error?.code == .unreachable)
            #expect(error?.message.contains("required and prohibited") == true, "\(error as Any)")
        }
    }

    @Test("viability follows the cable, a better path another route")
    func viability() async throws {
        guard await NetworkNamespace.isPossible("viability") else { return }
        try await NetworkNamespace().run("insideViability")
    }

    @Test func insideViability() async throws {
        guard NetworkNamespace.isInside() else { return }
        func ip(_ words: String) async throws {
            try await Program.succeed(["ip"] + words.split(separator: " ").map(String.init))
        }
        for (number, network) in [(0, "192.0.2"), (1, "198.51.100")] {
            try await ip("link add w\(number) type veth peer name p\(number)")
            try await ip("link set w\(number) up")
            try await ip("link set p\(number) up")
            try await ip("addr add \(network).1/24 dev w\(number)")
        }
        try await ip("route add default via 192.0.2.254 metric 100")
        let connection = Connection(to: .udp("203.0.113.9", 9)) { UDP() }
        try await connection.start()
        var viability = connection.viability.makeAsyncIterator()
        var better = connection.betterPath.makeAsyncIterator()
        #expect(await viability.next() == true)
        #expect(await better.next() == false)
        #expect(connection.currentPath.interfaces.first?.name == "w0")
        try await ip("route add default via 198.51.100.254 metric 50")
        #expect(await better.next() == true)
        try await ip("route del default metric 50")
        #expect(await better.next() == false)
        try await ip("link set p0 down")
        #expect(await viability.next() == false)
        try await ip("link set p0 up")
        #expect(await viability.next() == true)
    }
}
