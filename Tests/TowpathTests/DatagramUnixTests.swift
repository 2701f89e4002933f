import Foundation
import Glibc
import TestSupport
import Testing
import Towpath

@Suite("Unix datagrams", .timeLimit(.minutes(1)))
struct DatagramUnixTests {
    @Test("a pair carries datagrams both ways, empty ones too")
    func pair() async throws {
        let (left, right) = try Connection.datagramPair()
        #expect(left.state == .ready)
        try await left.send([1] as [UInt8])
        try await left.send([UInt8]())
        try await right.send([2, 2] as [UInt8])
        #expect(try await right.receive()?.bytes == [1])
        let empty = try #require(try await right.receive())
        #expect(empty.bytes == [])
        #expect(empty.remoteEndpoint == nil)
        #expect(try await left.receive()?.bytes == [2, 2])
        #expect(try left.maximumDatagramSize >= 65_536)
    }

    @Test("what a Unix socket takes is more than UDP can: the rest is marked as cut off")
    func larger() async throws {
        let (left, right) = try Connection.datagramPair()
        try await left.send(DatagramProbe.pattern(70_000))
        try await left.send([1] as [UInt8])
        let cut = try #require(try await right.receive())
        #expect(cut.isTruncated)
        #expect(cut.bytes == DatagramProbe.pattern(65_535))
        #expect(try await right.receive()?.bytes == [1])
    }

    @Test("while the peer does not read a send waits; it goes on when it reads, and none is lost")
    func fullBuffer() async throws {
        let (left, right) = try Connection.datagramPair()
        let size = 1_000
        let progress = Inbox<Int>()
        // More than any queue: net.unix.max_dgram_qlen and the send buffer.
        let count = 2_000
        let sending = Task {
            for number in 0..<count {
                try await left.send([UInt8](repeating: UInt8(number % 256), count: size))
                progress.send(number)
            }
        }
        // Once a send with a time limit does not get through, the buffer is full.
        await DatagramProbe.eventually {
            do { try await left.send([255] as [UInt8], timeout: .milliseconds(1)) } catch {
                return (error as? NetworkError)?.code == .timedOut
            }
            return false
        }
        var received = 0
        while received < count {
            let datagram = try #require(try await right.receive())
            guard datagram.bytes.count == size else { continue }
            #expect(datagram.bytes.first == UInt8(received % 256))
            received += 1
        }
        try await sending.value
    }

    @Test("a send that waits is withdrawn when it is cancelled", arguments: [false, true])
    func cancelledSend(several: Bool) async throws {
        let (left, right) = try Connection.datagramPair()
        var filled = 0
        while (try? await left.send([0] as [UInt8], timeout: .milliseconds(1))) != nil {
            filled += 1
        }
        #expect(filled > 0)
        let sending = Task {
            if several {
                try await left.send(contentsOf: [[1], [2]])
            } else {
                try await left.send([1] as [UInt8])
            }
        }
        await Task.yield()
        sending.cancel()
        await #expect(throws: CancellationError.self) { try await sending.value }
        for _ in 0..<filled { #expect(try await right.receive()?.bytes == [0]) }
        try await left.send([3] as [UInt8])
        #expect(try await right.receive()?.bytes == [3])
    }

    @Test("a waiting send ends when the connection does", arguments: ["close", "abort", "peer"])
    func endedSend(way: String) async throws {
        let (left, right) = try Connection.datagramPair()
        while (try? await left.send([0] as [UInt8], timeout: .milliseconds(1))) != nil {}
        let sending = Task { try await datagramError { try await left.send([1] as [UInt8]) } }
        await Task.yield()
        switch way {
        case "close": await left.close()
        case "abort": left.abort()
        default: await right.close()
        }
        let error = try await sending.value
        #expect(error.code == (way == "peer" ? .connectionRefused : .closed))
    }

    @Test("connections talk by path; a path with nobody behind it is refused")
    func paths() async throws {
        try await withDatagramFolder { folder in
            let (near, far) = (Endpoint.unix(folder + "/near"), Endpoint.unix(folder + "/far"))
            let missing = Connection(to: far) { UDP() }
            #expect(try await datagramError { try await missing.start() }.code == .unreachable)
            let peer = try DatagramSocket(far)
            let connection = Connection(to: far, parameters: Parameters().localEndpoint(near)) {
                UDP()
            }
            try await connection.send([1] as [UInt8])
            #expect(try await peer.receive().bytes == [1])
            try peer.send([2], to: near)
            let datagram = try #require(try await connection.receive())
            #expect(datagram.bytes == [2])
            #expect(datagram.remoteEndpoint == far)
            #expect(datagram.localEndpoint == near)
            #expect(connection.localEndpoint == near)
        }
    }

    @Test("a peer that went away makes a send fail, and the connection stays")
    func peerGone() async throws {
        try await withDatagramFolder { folder in
            let far = Endpoint.unix(folder + "/far")
            var peer: DatagramSocket? = try DatagramSocket(far)
            let connection = Connection(to: far) { UDP() }
            try await connection.send([1] as [UInt8])
            #expect(try await peer?.receive().bytes == [1])
            peer = nil
            // A child that another test starts at this moment may hold the socket until its exec.
            var error: NetworkError?
            await DatagramProbe.eventually("sends go on to succeed") {
                error = await Streams.failure { try await connection.send([2] as [UInt8]) }
                return error != nil
            }
            #expect(error?.code == .connectionRefused)
            #expect(connection.state == .ready)
        }
    }

    @Test("options that a Unix socket has not fail it", arguments: [0, 1])
    func options(option: Int) async throws {
        try await withDatagramFolder { folder in
            let peer = try DatagramSocket(.unix(folder + "/peer"))
            let udp = option == 0 ? UDP().noChecksum(true) : UDP().fragmentation(.prohibited)
            let connection = Connection(to: try peer.endpoint) { udp }
            let error = try await datagramError { try await connection.start() }
            #expect(error.code == .optionFailed)
        }
    }

    @Test("a listener for Unix datagrams says what to use instead")
    func listener() async throws {
        let error = try await datagramError {
            _ = try await Listener(on: .unix("/nowhere")) { UDP() }
        }
        #expect(error.code == .notSupported)
    }
}

private func withDatagramFolder(_ body: (String) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(
        path: "towpath-\(getpid())-\(UInt32.random(in: 0 ... .max))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body(folder.path)
}
