import Glibc
import Testing
import Towpath
import TowpathReactor

@Suite("Unix datagrams", .timeLimit(.minutes(1)))
struct UnixDatagramTests {
    @Test("a pair carries each datagram whole, the empty one too, in order and with no loss")
    func pair() async throws {
        let (one, other) = try Connection.datagramPair()
        let texts = ["first", "", "third", String(repeating: "l", count: 60_000)]
        let sending = Task { for text in texts { try await one.send(text.utf8) } }
        for text in texts {
            let datagram = try await other.receive()
            #expect(datagram?.bytes == Array(text.utf8))
            #expect(datagram?.isTruncated == false)
        }
        try await sending.end()
        try await other.send("back".utf8)
        let answer = try await one.receive()
        #expect(answer?.bytes == Array("back".utf8))
        #expect(try one.peerCredentials().processID == getpid())
    }

    @Test("a sender waits while the receiver's queue is full, and loses nothing")
    func full() async throws {
        let (one, other) = try Connection.datagramPair()
        let sending = Task {
            for number in 0..<2_000 { try await one.send("\(number)".utf8) }
        }
        for number in 0..<2_000 {
            let datagram = try await other.receive()
            #expect(datagram?.bytes == Array("\(number)".utf8))
        }
        try await sending.end()
    }

    @Test("a client sends from a name of its own, and gets the answer there")
    func echo() async throws {
        let (endpoint, own) = (Endpoint.ownName("server"), Endpoint.ownName("client"))
        let server = try PlainSocket.bound(to: endpoint.abstractAddress, .datagram)
        let client = Connection(to: endpoint, parameters: Parameters().localEndpoint(own)) { UDP() }
        try await client.send("ping".utf8)
        #expect(client.localEndpoint == own)
        #expect(client.remoteEndpoint == endpoint)
        #expect(server.receive() == "ping")
        #expect(server.descriptor.connect(to: try own.abstractAddress) == .done(0))
        #expect(server.send("pong"))
        let answer = try await client.receive()
        #expect(answer?.bytes == Array("pong".utf8))
    }

    @Test("to a path, with a path of its own")
    func paths() async throws {
        try await withFolder { folder in
            let address = try #require(
                SocketAddress(unix: Array("\(folder)/server".utf8), abstract: false))
            let server = try PlainSocket.bound(to: address, .datagram)
            let own = Endpoint.unix("\(folder)/client")
            let client = Connection(
                to: .unix("\(folder)/server"), parameters: Parameters().localEndpoint(own)
            ) { UDP() }
            try await client.send("ping".utf8)
            #expect(server.receive() == "ping")
            #expect(client.localEndpoint == own)
        }
    }

    @Test("a stream does not connect to datagrams")
    func wrongType() async throws {
        try await withFolder { folder in
            let address = try #require(
                SocketAddress(unix: Array("\(folder)/server".utf8), abstract: false))
            let server = try PlainSocket.bound(to: address, .datagram)
            let error = try await #require(throws: NetworkError.self) {
                try await Connection(to: .unix("\(folder)/server")) { TCP() }.start()
            }
            #expect(error.cause == .system(errno: EPROTOTYPE, call: "connect"))
            withExtendedLifetime(server) {}
        }
    }

    @Test("they have no listener")
    func noListener() async throws {
        let error = try await #require(throws: NetworkError.self) {
            _ = try await Listener(on: .ownName("none")) { UDP() }
        }
        #expect(error.code == .notSupported)
        #expect(error.message.contains("use a connection"))
    }
}
