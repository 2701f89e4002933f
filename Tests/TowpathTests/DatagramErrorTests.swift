import Glibc
import TestSupport
import Testing
import Towpath

@Suite("BR-010: a UDP peer that is not there is a passing error", .timeLimit(.minutes(1)))
struct DatagramRefusalTests {
    @Test("BR-010: the next receive tells it once, the socket stays, and 'b' arrives")
    func receive() async throws {
        let port = try DatagramClosedPort()
        let connection = Connection(to: port.endpoint) { UDP() }
        try await connection.send("a".utf8)
        let error = try await datagramError { _ = try await connection.receive() }
        #expect(error.code == .connectionRefused)
        #expect(error.stage == .receive)
        #expect(error.cause == .system(errno: ECONNREFUSED, call: "recvmmsg"))
        let quiet = try await datagramError {
            _ = try await connection.receive(timeout: .milliseconds(1))
        }
        #expect(quiet.code == .timedOut)
        #expect(connection.state == .ready)
        try port.open()
        try await connection.send("b".utf8)
        #expect(try await port.socket.receive().bytes == Array("b".utf8))
    }

    @Test("BR-010: the next send tells it once, and the one after it arrives")
    func send() async throws {
        let port = try DatagramClosedPort()
        let connection = Connection(to: port.endpoint) { UDP() }
        try await connection.send("a".utf8)
        let error = try await datagramError { try await connection.send("lost".utf8) }
        #expect(error.code == .connectionRefused)
        #expect(error.stage == .send)
        #expect(connection.state == .ready)
        try port.open()
        try await connection.send("b".utf8)
        #expect(try await port.socket.receive().bytes == Array("b".utf8))
    }

    @Test(
        "BR-010: a send of several tells it once too, whether they are cut by the kernel or not",
        arguments: [[[1, 1], [2, 2], [3]], [[1], [2, 2], [3, 3, 3]]] as [[[UInt8]]])
    func sendSeveral(datagrams: [[UInt8]]) async throws {
        let port = try DatagramClosedPort()
        let connection = Connection(to: port.endpoint) { UDP() }
        try await connection.send("a".utf8)
        let error = try await datagramError { try await connection.send(contentsOf: datagrams) }
        #expect(error.code == .connectionRefused)
        try port.open()
        try await connection.send(contentsOf: datagrams)
        #expect(try await port.socket.receive(count: 3) == datagrams)
    }

    @Test("BR-010: an idle receive loop hears of it, and goes on")
    func idleLoop() async throws {
        let port = try DatagramClosedPort()
        let connection = Connection(to: port.endpoint) { UDP() }
        try await connection.start()
        let log = Inbox<String>()
        let loop = Task {
            while !Task.isCancelled {
                do {
                    for try await datagram in connection.messages {
                        log.send(String(decoding: datagram.bytes, as: UTF8.self))
                    }
                } catch let error as NetworkError {
                    log.send(error.code.description)
                    if error.code == .closed { return }
                }
            }
        }
        try await connection.send("a".utf8)
        #expect(try await log.next() == "connectionRefused")
        try port.open()
        try await connection.send("b".utf8)
        let (bytes, sender) = try await port.socket.receive()
        #expect(bytes == Array("b".utf8))
        try port.socket.send("c".utf8.map { $0 }, to: try #require(sender))
        #expect(try await log.next() == "c")
        await connection.close()
        #expect(try await log.next() == "closed")
        try await loop.value
    }
}

@Suite("UDP connection: what is refused", .timeLimit(.minutes(1)))
struct DatagramErrorTests {
    @Test("more than a datagram can hold is too long, and nothing else is lost", arguments: 0..<3)
    func tooLong(way: Int) async throws {
        let (connection, peer) = try await DatagramProbe.connected()
        let large = DatagramProbe.pattern(65_508)
        let error = try await datagramError {
            switch way {
            case 0: try await connection.send(large)
            case 1: try await connection.send(large.span.bytes)
            default: try await connection.send(contentsOf: [[1], large, [2]])
            }
        }
        #expect(error.code == .messageTooLong)
        #expect(error.stage == .send)
        #expect(connection.state == .ready)
        try await connection.send([3] as [UInt8])
        // Of several, those before the one that fails are sent, and those after it are not.
        #expect(try await peer.receive(count: way == 2 ? 2 : 1) == (way == 2 ? [[1], [3]] : [[3]]))
    }

    @Test("one receive at a time")
    func receiveInProgress() async throws {
        let (connection, peer) = try await DatagramProbe.connected()
        let first = Task {
            while true {
                do { return try await connection.receive()?.bytes } catch let error as NetworkError
                {
                    // The probe below was sooner.
                    guard error.code == .receiveInProgress else { throw error }
                    await Task.yield()
                }
            }
        }
        await DatagramProbe.eventually {
            let error = try? await datagramError {
                _ = try await connection.receive(timeout: .milliseconds(1))
            }
            return error?.code == .receiveInProgress
        }
        try peer.send([1])
        #expect(try await first.value == [1])
    }

    @Test("after the end every call says closed", arguments: [false, true])
    func closed(byAbort: Bool) async throws {
        let (connection, _) = try await DatagramProbe.connected()
        if byAbort { connection.abort() } else { await connection.close() }
        #expect(connection.state == .cancelled)
        #expect(connection.localEndpoint == nil)
        let calls: [() async throws -> Void] = [
            { try await connection.send([1] as [UInt8]) },
            { try await connection.send(contentsOf: [[1], [2]]) },
            { _ = try await connection.receive() },
            { for try await _ in connection.messages {} },
            { try await connection.start() },
        ]
        for call in calls { #expect(try await datagramError(call).code == .closed) }
        await connection.close()
        connection.abort()
    }
}
