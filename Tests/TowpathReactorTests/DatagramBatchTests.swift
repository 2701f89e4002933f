import CTowpathLinux
import TestSupport
import Testing
import TowpathReactor

@Suite("Datagram batch: bytes")
struct DatagramBatchTests {
    @Test("datagrams come in order, each by itself, with where they came from")
    func several() throws {
        let receiver = try Descriptor.bound()
        let sender = try Descriptor.sender(to: receiver)
        let messages: [[UInt8]] = [[1], [2, 2], [], [4]]
        for message in messages { #expect(sender.send(message) == .done(message.count)) }
        let received = try receiver.receiveDatagrams()
        #expect(received.map(\.bytes) == messages)
        let remote = try sender.localAddress()
        for datagram in received {
            #expect(datagram.header.sender == remote)
            #expect(!datagram.header.isTruncated)
        }
    }

    @Test("a datagram of no bytes is one, not an end")
    func empty() throws {
        let receiver = try Descriptor.bound()
        let sender = try Descriptor.sender(to: receiver)
        #expect(sender.send([]) == .done(0))
        let received = try receiver.receiveDatagram()
        #expect(received.bytes == [])
        #expect(!received.header.isTruncated)
        #expect(try received.header.sender == sender.localAddress())
    }

    @Test("a batch takes no more than its limit, and what it can hold", arguments: [1, 7, 32, 100])
    func limit(_ limit: Int) throws {
        let receiver = try Descriptor.bound()
        let sender = try Descriptor.sender(to: receiver)
        for index in 0..<40 as Range<UInt8> { _ = sender.send([index]) }
        let first = try receiver.receiveDatagrams(limit: limit)
        #expect(first.map(\.bytes) == (0..<UInt8(min(limit, 32))).map { [$0] })
        var count = first.count
        while count < 40 { count += try receiver.receiveDatagrams().count }
        #expect(count == 40)
    }

    @Test("where nothing waits a batch would block")
    func nothing() throws {
        let receiver = try Descriptor.bound()
        let result = DatagramBatch.current.receive(from: receiver, limit: 8, maximumSize: 100)
        #expect(result == .wouldBlock)
    }

    @Test("BR-011: a datagram that is longer than the room for it says so; the next is whole")
    func truncation() throws {
        let receiver = try Descriptor.bound()
        try receiver.set(.receiveBuffer, to: 1 << 20)
        let sender = try Descriptor.sender(to: receiver)
        let large = (0..<65_507).map { UInt8(truncatingIfNeeded: $0) }
        #expect(sender.send(large) == .done(65_507))
        #expect(sender.send([1, 2, 3]) == .done(3))
        let received = try receiver.receiveDatagrams(maximumSize: 2_048)
        #expect(received.map(\.header.isTruncated) == [true, false])
        #expect(received.map(\.bytes) == [Array(large.prefix(2_048)), [1, 2, 3]])
    }

    @Test("BR-011: the largest datagram of all comes whole where there is room")
    func largest() throws {
        let receiver = try Descriptor.bound()
        try receiver.set(.receiveBuffer, to: 1 << 20)
        let sender = try Descriptor.sender(to: receiver)
        let large = (0..<65_507).map { UInt8(truncatingIfNeeded: $0) }
        #expect(sender.send(large) == .done(65_507))
        let received = try receiver.receiveDatagram()
        #expect(received.bytes == large)
        #expect(!received.header.isTruncated)
    }

    @Test("a datagram that just fits is not truncated, one byte more is", arguments: [0, 1])
    func boundary(excess: Int) throws {
        let receiver = try Descriptor.bound()
        let sender = try Descriptor.sender(to: receiver)
        _ = sender.send([UInt8](repeating: 1, count: 100 + excess))
        let received = try receiver.receiveDatagram(maximumSize: 100)
        #expect(received.bytes.count == 100)
        #expect(received.header.isTruncated == (excess > 0))
    }

    @Test("datagrams come through a Unix pair, from a socket without a name")
    func unix() throws {
        let ends = try Descriptor.joined(.datagram)
        _ = ends.near.send([1, 2, 3])
        let received = try ends.far.receiveDatagram(maximumSize: 2)
        #expect(received.bytes == [1, 2])
        #expect(received.header.isTruncated)
        #expect(received.header.remote == nil)
    }

    @Test("each thread has a batch of its own")
    func perThread() async throws {
        try await withLoop { first in
            try await withLoop { second in
                let own = try await first.run { ObjectIdentifier(DatagramBatch.current) }
                let again = try await first.run { ObjectIdentifier(DatagramBatch.current) }
                let other = try await second.run { ObjectIdentifier(DatagramBatch.current) }
                #expect(own == again)
                #expect(own != other)
            }
        }
    }
}

@Suite("BR-010: a peer that is not there")
struct RefusedDatagramTests {
    @Test("the refusal is told once by the next receive, and the socket goes on")
    func receive() throws {
        let port = try ClosedPort()
        let sender = try Descriptor.socket(.ipv4, .datagram)
        #expect(sender.connect(to: port.address) == .done(0))
        #expect(sender.send([1]) == .done(1))
        try sender.wait(for: POLLERR)
        let batch = DatagramBatch.current
        #expect(
            batch.receive(from: sender, limit: 8, maximumSize: 100) == .failed(ECONNREFUSED))
        #expect(batch.receive(from: sender, limit: 8, maximumSize: 100) == .wouldBlock)
        port.open()
        #expect(sender.send([2]) == .done(1))
        #expect(try port.socket.receiveDatagram().bytes == [2])
    }

    @Test("the refusal is told once by the next send, and the socket goes on")
    func send() throws {
        let port = try ClosedPort()
        let sender = try Descriptor.socket(.ipv4, .datagram)
        _ = sender.connect(to: port.address)
        #expect(sender.sendDatagram([1]) == .done(1))
        try sender.wait(for: POLLERR)
        #expect(sender.sendDatagrams([[2], [3]], nil) == .failed(ECONNREFUSED))
        port.open()
        #expect(sender.sendDatagrams([[2], [3]], nil) == .done(2))
        #expect(try port.socket.receiveDatagrams().map(\.bytes) == [[2], [3]])
    }

    @Test("the refusal wakes a handler that waits for input", .timeLimit(.minutes(1)))
    func handler() async throws {
        try await withLoop { loop in
            let port = try ClosedPort()
            let sender = Holder(try Descriptor.socket(.ipv4, .datagram).release())
            _ = sender.descriptor.connect(to: port.address)
            let recorder = Recorder()
            let token = try loop.register(sender.descriptor, for: .input, handler: recorder)
            #expect(sender.descriptor.send([1]) == .done(1))
            let events = try await recorder.events.next()
            #expect(events.contains(.error))
            #expect(events.isReadable)
            #expect(sender.descriptor.receive() == .failed(ECONNREFUSED))
            loop.deregister(sender.descriptor, token: token)
        }
    }
}
