import Glibc
import TestSupport
import Testing
import Towpath

/// Somebody who listens for TCP connections and lets them wait.
final class EstablishmentTarget: Sendable {
    let socket: DatagramSocket
    let endpoint: Endpoint
    private let fillers: [DatagramSocket]

    var port: UInt16 { endpoint.port ?? 0 }

    /// With `answering` false the queue is full: a connection attempt neither succeeds nor fails.
    init(_ endpoint: Endpoint = .udp4(), answering: Bool = true) throws {
        socket = try DatagramSocket(endpoint, stream: true)
        self.endpoint = try socket.endpoint
        try socket.listen(backlog: answering ? 64 : 0)
        guard !answering else {
            fillers = []
            return
        }
        // One more than the backlog is let in.
        let filler = try DatagramSocket(
            endpoint.domain == AF_INET ? .udp4() : .udp6(), stream: true)
        try filler.connect(to: self.endpoint)
        fillers = [filler]
    }

    /// How many connections wait to be accepted.
    func accepted() -> [DatagramSocket] {
        var sockets: [DatagramSocket] = []
        while socket.hasInput {
            let number = acceptMarked(socket.number)
            if number >= 0 { sockets.append(DatagramSocket(owning: number)) }
        }
        return sockets
    }
}

/// A TCP port of 127.0.0.1 where nobody listens: bound, so that no other test gets it.
final class DatagramClosedTCPPort: Sendable {
    let socket: DatagramSocket
    let endpoint: Endpoint

    var port: UInt16 { endpoint.port ?? 0 }

    init(_ endpoint: Endpoint = .udp4()) throws {
        socket = try DatagramSocket(endpoint, stream: true)
        self.endpoint = try socket.endpoint
    }
}

/// What is true of every report of a connection that was opened.
func expectConsistent(
    _ report: EstablishmentReport, winner: Endpoint,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    let winners = report.attempts.filter(\.succeeded)
    #expect(winners.map(\.endpoint) == [winner], sourceLocation: sourceLocation)
    #expect(winners.allSatisfy { $0.error == nil }, sourceLocation: sourceLocation)
    #expect(
        winners.allSatisfy { $0.duration != nil }, "the winner's time is known",
        sourceLocation: sourceLocation)
    #expect(
        report.attempts.map(\.start) == report.attempts.map(\.start).sorted(),
        sourceLocation: sourceLocation)
    for attempt in report.attempts {
        #expect(
            attempt.start + (attempt.duration ?? .zero) <= report.duration,
            sourceLocation: sourceLocation)
        #expect((attempt.error == nil) || attempt.duration != nil, sourceLocation: sourceLocation)
    }
}
