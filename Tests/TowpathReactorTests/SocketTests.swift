import CTowpathLinux
import Testing
import TowpathReactor

@Suite("Socket")
struct SocketTests {
    @Test("bytes go both ways through a pair")
    func pair() throws {
        let ends = try Descriptor.joined()
        #expect(ends.near.send([1, 2, 3]) == .done(3))
        #expect(ends.far.send([4]) == .done(1))
        #expect(ends.far.receive(atMost: 2) == .bytes([1, 2]))
        #expect(ends.far.receive() == .bytes([3]))
        #expect(ends.far.receive() == .nothing)
        #expect(ends.near.receive() == .bytes([4]))
    }

    @Test("a datagram pair keeps the messages apart, one of no bytes too")
    func datagramPair() throws {
        let ends = try Descriptor.joined(.datagram)
        for message in [[1, 2], [], [3]] as [[UInt8]] { _ = ends.near.send(message) }
        #expect(ends.far.receive() == .bytes([1, 2]))
        #expect(ends.far.receive() == .bytes([]))
        #expect(ends.far.receive() == .bytes([3]))
        #expect(ends.far.receive() == .nothing)
    }

    @Test("what was sent before the end is read before the end, and the other way stays open")
    func halfClose() throws {
        let ends = try Descriptor.connected()
        #expect(ends.near.send([1]) == .done(1))
        ends.near.shutdownOutput()
        #expect(ends.near.send([2]) == .failed(EPIPE))
        try ends.far.waitForEnd()
        #expect(ends.far.receive() == .bytes([1]))
        #expect(ends.far.receive() == .end)
        #expect(ends.far.receive() == .end)
        #expect(ends.far.send([3]) == .done(1))
        try ends.near.wait(for: POLLIN)
        #expect(ends.near.receive() == .bytes([3]))
    }

    @Test("finishing twice, or without a connection, does nothing")
    func halfCloseTwice() throws {
        let ends = try Descriptor.joined()
        ends.near.shutdownOutput()
        ends.near.shutdownOutput()
        #expect(ends.far.receive() == .end)
        let socket = try Descriptor.socket(.ipv4, .stream)
        socket.shutdownOutput()
        #expect(socket.takeError() == 0)
    }

    @Test("sending to a peer that is gone is an error, not a signal")
    func brokenPipe() throws {
        let near = try Descriptor.joined().keepNear()
        #expect(near.send([1]) == .failed(EPIPE))
        #expect(near.send(gathering: [[1], [2]], from: 0) == .failed(EPIPE))
    }

    @Test("pieces are gathered from an offset anywhere in them", arguments: 0...9)
    func gather(offset: Int) throws {
        let pieces: [[UInt8]] = [[], [0, 1, 2], [], [], [3], [4, 5, 6, 7, 8], []]
        let ends = try Descriptor.joined()
        #expect(ends.near.send(gathering: pieces, from: offset) == .done(9 - offset))
        #expect(ends.far.receiveAll() == Array(UInt8(offset)..<9))
    }

    @Test("no pieces, or only empty ones, send nothing")
    func gatherNothing() throws {
        let ends = try Descriptor.joined()
        #expect(ends.near.send(gathering: [], from: 0) == .done(0))
        #expect(ends.near.send(gathering: [[], []], from: 0) == .done(0))
        #expect(ends.far.receive() == .nothing)
    }

    @Test("of more than 64 pieces the first 64 go at once, and the rest from there")
    func gatherMany() throws {
        let pieces = (0..<200).map { [UInt8($0)] }
        let ends = try Descriptor.joined()
        var sent = 0
        var steps: [Int] = []
        while sent < 200, case .done(let count) = ends.near.send(gathering: pieces, from: sent) {
            steps.append(count)
            sent += count
        }
        #expect(steps == [64, 64, 64, 8])
        #expect(ends.far.receiveAll() == Array(0..<200))
    }

    @Test("gathered pieces that the kernel takes in parts arrive whole")
    func gatherInParts() throws {
        let pieces = (0..<40).map { [UInt8](repeating: UInt8($0), count: 60_000 + $0) }
        let ends = try Descriptor.joined()
        var sent = 0
        var received: [UInt8] = []
        var parts = 0
        while sent < pieces.joined().count {
            switch ends.near.send(gathering: pieces, from: sent) {
            case .done(let count): (sent, parts) = (sent + count, parts + 1)
            case .wouldBlock: received += ends.far.receiveAll()
            case .failed(let code): throw SystemError(code, "sendmsg")
            }
        }
        received += ends.far.receiveAll()
        #expect(parts > 1)
        #expect(received == Array(pieces.joined()))
    }

    @Test("a connection that is refused says so once")
    func refused() throws {
        // Bound and not listening: nobody else can have the port.
        let closed = try Descriptor.socket(.ipv4, .stream)
        try closed.bind(to: .loopback())
        let socket = try Descriptor.socket(.ipv4, .stream)
        #expect(socket.connect(to: try closed.localAddress()) == .wouldBlock)
        try socket.wait(for: POLLOUT)
        #expect(socket.takeError() == ECONNREFUSED)
        #expect(socket.takeError() == 0)
    }

    @Test("a connection under way stands once the socket is writable, without an error")
    func connect() throws {
        let listener = try Descriptor.listening()
        let socket = try Descriptor.socket(.ipv4, .stream)
        let address = try listener.localAddress()
        #expect(socket.connect(to: address) == .wouldBlock)
        try socket.wait(for: POLLOUT)
        #expect(socket.takeError() == 0)
        #expect(try socket.remoteAddress() == address)
        try listener.wait(for: POLLIN)
        guard case .connection(let accepted, let remote) = listener.accept() else {
            Issue.record("nothing to accept")
            return
        }
        #expect(try remote == socket.localAddress())
        #expect(try accepted.localAddress() == address)
    }

    @Test("a Unix connection stands at once, or fails at once")
    func unix() throws {
        try withTemporaryDirectory { directory in
            let path = Array((directory + "/socket").utf8)
            let address = try #require(SocketAddress(unix: path, abstract: false))
            let listener = try Descriptor.socket(.unix, .stream)
            let socket = try Descriptor.socket(.unix, .stream)
            #expect(socket.connect(to: address) == .failed(ENOENT))
            try listener.bind(to: address)
            #expect(socket.connect(to: address) == .failed(ECONNREFUSED))
            try listener.listen(backlog: 1)
            #expect(socket.connect(to: address) == .done(0))
            #expect(try socket.remoteAddress().unix?.name == path)
        }
    }

    @Test("a Unix connection that finds the listener's queue full would block, and is not begun")
    func unixFull() throws {
        try withTemporaryDirectory { directory in
            let path = Array((directory + "/socket").utf8)
            let address = try #require(SocketAddress(unix: path, abstract: false))
            let listener = try Descriptor.socket(.unix, .stream)
            try listener.bind(to: address)
            try listener.listen(backlog: 0)
            let first = try Descriptor.socket(.unix, .stream)
            #expect(first.connect(to: address) == .done(0))
            let second = try Descriptor.socket(.unix, .stream)
            #expect(second.connect(to: address) == .wouldBlock)
            #expect(throws: SystemError(ENOTCONN, "getpeername")) { try second.remoteAddress() }
            _ = listener.accept()
            #expect(second.connect(to: address) == .done(0))
        }
    }

    @Test("a call that sets up names itself when it fails")
    func errors() throws {
        let socket = try Descriptor.socket(.ipv4, .stream)
        #expect(throws: SystemError(ENOTCONN, "getpeername")) { try socket.remoteAddress() }
        let listener = try Descriptor.listening()
        let address = try listener.localAddress()
        #expect(throws: SystemError(EADDRINUSE, "bind")) { try socket.bind(to: address) }
        let datagram = try Descriptor.socket(.ipv4, .datagram)
        #expect(throws: SystemError(EOPNOTSUPP, "listen")) { try datagram.listen(backlog: 1) }
    }

    @Test("a part of a file goes out from its offset, and its end is the end")
    func sendFile() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/file"
            let content = (0..<10_000).map { UInt8(truncatingIfNeeded: $0) }
            try writeFile(path, content)
            let file = try Descriptor.openFile(path)
            let ends = try Descriptor.connected()
            #expect(ends.near.sendFile(file, from: 100, count: 300) == .done(300))
            #expect(ends.near.sendFile(file, from: 9_900, count: 500) == .done(100))
            #expect(ends.near.sendFile(file, from: 10_000, count: 1) == .done(0))
            ends.near.shutdownOutput()
            try ends.far.waitForEnd()
            #expect(ends.far.receiveAll() == Array(content[100..<400] + content[9_900...]))
        }
    }
}
