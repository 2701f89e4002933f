import TestSupport
import Testing
import Towpath

@Suite("UDP connection: several datagrams at once", .timeLimit(.minutes(1)))
struct DatagramSeveralTests {
    static let lists: [[[UInt8]]] = [
        [],
        [[]],
        [[], [], []],
        (0..<100).map { [UInt8](repeating: $0, count: 500) },
        (0..<100).map { [UInt8](repeating: $0, count: $0 == 99 ? 3 : 200) },
        (0..<100).map { [UInt8](repeating: $0, count: 1 + Int($0) * 37 % 200) },
        (0..<70).map { [UInt8](repeating: $0, count: $0 % 10 == 0 ? 0 : 50) },
        (0..<66).map { [UInt8](repeating: $0, count: 1) },
        [DatagramProbe.pattern(40_000), DatagramProbe.pattern(40_000), [1]],
        [DatagramProbe.pattern(65_507), [1], DatagramProbe.pattern(20_000)],
    ]

    @Test("all arrive, in order, each by itself", arguments: lists.indices, [false, true])
    func all(index: Int, isIPv6: Bool) async throws {
        let (connection, peer) = try await DatagramProbe.connected(at: isIPv6 ? .udp6() : .udp4())
        try peer.enlarge()
        let datagrams = Self.lists[index]
        try await connection.send(contentsOf: datagrams)
        #expect(try await peer.receive(count: datagrams.count) == datagrams)
        #expect(!peer.hasInput)
    }

    @Test("a listener's connection receives them as they were sent", arguments: lists.indices)
    func received(index: Int) async throws {
        // What its queue and the kernel's buffer hold for sure.
        let datagrams = Self.lists[index].filter { $0.count < 30_000 }
        let log = Inbox<[UInt8]>()
        try await Listener.serving { connection in
            for try await datagram in connection.messages { log.send(datagram.bytes) }
        } while: { listener in
            let connection = Connection(to: listener.localEndpoint) { UDP() }
            try await connection.send(contentsOf: datagrams)
            #expect(try await log.next(datagrams.count) == datagrams)
        }
    }

    @Test(
        "through a Unix pair, which no device cuts for, they stay apart", arguments: lists.indices)
    func unix(index: Int) async throws {
        let (left, right) = try Connection.datagramPair()
        let datagrams = Self.lists[index]
        async let sending: Void = left.send(contentsOf: datagrams)
        var received: [[UInt8]] = []
        while received.count < datagrams.count {
            received.append(try #require(try await right.receive()).bytes)
        }
        try await sending
        #expect(received == datagrams)
    }

    @Test("a listener's connection sends several in one go too")
    func fromListener() async throws {
        let datagrams = (0..<80).map { [UInt8](repeating: $0, count: 300) }
        try await Listener.serving { connection in
            for try await _ in connection.messages {
                try await connection.send(contentsOf: datagrams)
            }
        } while: { listener in
            let peer = try DatagramSocket()
            try peer.enlarge()
            try peer.send([1], to: listener.localEndpoint)
            #expect(try await peer.receive(count: 80) == datagrams)
        }
    }
}
