import CTowpathLinux
import Testing
import TowpathReactor

@Suite("Datagram send")
struct DatagramSendTests {
    @Test("datagrams of mixed sizes go in one call, in order, one of no bytes too")
    func mixed() throws {
        let receiver = try Descriptor.bound()
        try receiver.set(.receiveBuffer, to: 1 << 20)
        let sender = try Descriptor.sender(to: receiver)
        let sizes = [1, 0, 1_000, 20_000, 3, 0, 512]
        let messages = sizes.enumerated().map { index, size in
            [UInt8](repeating: UInt8(index), count: size)
        }
        #expect(sender.sendDatagrams(messages[...], nil) == .done(messages.count))
        #expect(try receiver.receiveDatagrams().map(\.bytes) == messages)
    }

    @Test("a slice is sent from its own start")
    func slice() throws {
        let receiver = try Descriptor.bound()
        let sender = try Descriptor.sender(to: receiver)
        let messages: [[UInt8]] = [[0], [1], [2, 2], [3]]
        #expect(sender.sendDatagrams(messages[1..<3], nil) == .done(2))
        #expect(try receiver.receiveDatagrams().map(\.bytes) == [[1], [2, 2]])
    }

    @Test("only empty datagrams, or none at all, are no trouble")
    func empty() throws {
        let receiver = try Descriptor.bound()
        let sender = try Descriptor.sender(to: receiver)
        #expect(sender.sendDatagrams([], nil) == .done(0))
        #expect(sender.sendDatagrams([[], []], nil) == .done(2))
        #expect(sender.sendDatagram([]) == .done(0))
        #expect(try receiver.receiveDatagrams().map(\.bytes) == [[], [], []])
    }

    @Test("of more than a batch the first 32 are taken")
    func many() throws {
        let receiver = try Descriptor.bound()
        let sender = try Descriptor.sender(to: receiver)
        let messages = (0..<50).map { [UInt8($0)] }
        #expect(sender.sendDatagrams(messages[...], nil) == .done(32))
        #expect(sender.sendDatagrams(messages[32...], nil) == .done(18))
        var received = try receiver.receiveDatagrams()
        received += try receiver.receiveDatagrams()
        #expect(received.map(\.bytes) == messages)
    }

    @Test("those before one that is too long are sent; then it is the first, and fails")
    func tooLong() throws {
        let receiver = try Descriptor.bound()
        let sender = try Descriptor.sender(to: receiver)
        let messages = [[1], [UInt8](repeating: 2, count: 65_508), [3]]
        #expect(sender.sendDatagrams(messages[...], nil) == .done(1))
        #expect(sender.sendDatagrams(messages[1...], nil) == .failed(EMSGSIZE))
        #expect(sender.sendDatagram(messages[1]) == .failed(EMSGSIZE))
        #expect(sender.sendDatagrams(messages[2...], nil) == .done(1))
        #expect(try receiver.receiveDatagrams().map(\.bytes) == [[1], [3]])
    }

    @Test("one socket sends to several peers by route")
    func routes() throws {
        let sender = try Descriptor.bound()
        for address in [SocketAddress.loopback(), SocketAddress(ipv4: 0x7F00_0002, port: 0)] {
            let receiver = try Descriptor.bound(to: address)
            let route = DatagramRoute(remote: try receiver.localAddress(), local: nil)
            #expect(sender.sendDatagram([1], route) == .done(1))
            #expect(sender.sendDatagrams([[2], [3]], route) == .done(2))
            #expect(try receiver.receiveDatagrams().map(\.bytes) == [[1], [2], [3]])
        }
    }

    @Test("an unconnected socket without a route has nowhere to send to")
    func noRoute() throws {
        let sender = try Descriptor.bound()
        #expect(sender.sendDatagram([1]) == .failed(EDESTADDRREQ))
        #expect(sender.sendDatagrams([[1]], nil) == .failed(EDESTADDRREQ))
    }

    @Test("a full Unix peer makes the sender wait, after those it took")
    func full() throws {
        let ends = try Descriptor.joined(.datagram)
        let messages = (0..<32).map { [UInt8($0)] }
        var sent = 0
        while case .done(let count) = ends.near.sendDatagrams(messages[...], nil) { sent += count }
        #expect(sent > 0)
        #expect(ends.near.sendDatagram([1]) == .wouldBlock)
        var received = 0
        while case .bytes(let bytes) = ends.far.receive() {
            #expect(bytes == messages[received % 32])
            received += 1
        }
        #expect(received == sent)
    }
}

@Suite("Datagram send: cut and joined by the kernel, udp(7)")
struct DatagramSegmentTests {
    @Test(
        "one send is cut into datagrams of a size, the last perhaps shorter",
        arguments: [2_000, 2_500, 2_001])
    func cut(count: Int) throws {
        let receiver = try Descriptor.bound()
        let sender = try Descriptor.sender(to: receiver)
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 / 7) }
        #expect(sender.sendDatagram(bytes, segmentSize: 1_000) == .done(count))
        let received = try receiver.receiveDatagrams()
        let expected = stride(from: 0, to: count, by: 1_000).map {
            Array(bytes[$0..<min($0 + 1_000, count)])
        }
        #expect(received.map(\.bytes) == expected)
        #expect(received.allSatisfy { $0.header.segmentSize == nil })
    }

    @Test("a cut send goes by a route too, from the address given")
    func route() throws {
        let receiver = try Descriptor.bound()
        let sender = try Descriptor.bound(to: SocketAddress(ipv4: 0, port: 0))
        try sender.set(.ipPacketInfo, to: 1)
        let port = try sender.localAddress().port
        let asked = SocketAddress(ipv4: 0x7F00_0003, port: port)
        _ = receiver.sendDatagram([0], DatagramRoute(remote: asked, local: nil))
        let header = try sender.receiveDatagram().header
        let route = DatagramRoute(remote: header.sender, local: header.local)
        #expect(sender.sendDatagram([1, 2, 3], route, segmentSize: 2) == .done(3))
        let received = try receiver.receiveDatagrams()
        #expect(received.map(\.bytes) == [[1, 2], [3]])
        #expect(received.map(\.header.sender) == [asked, asked])
    }

    @Test("a receiver that wants them joined gets them so, with their size")
    func joined() throws {
        let receiver = try Descriptor.bound()
        try receiver.set(.udpReceiveOffload, to: 1)
        let sender = try Descriptor.sender(to: receiver)
        let bytes = (0..<2_500).map { UInt8(truncatingIfNeeded: $0) }
        #expect(sender.sendDatagram(bytes, segmentSize: 1_000) == .done(2_500))
        let received = try receiver.receiveDatagram()
        #expect(received.bytes == bytes)
        #expect(received.header.segmentSize == 1_000)
        #expect(!received.header.isTruncated)
    }

    @Test(
        "as many datagrams as a run allows can be cut from one send",
        arguments: [1, 100, 1_000, 1_015])
    func largestRun(size: Int) throws {
        let receiver = try Descriptor.bound()
        try receiver.set(.receiveBuffer, to: 1 << 20)
        let sender = try Descriptor.sender(to: receiver)
        let messages = (0..<100).map { [UInt8](repeating: UInt8($0), count: size) }
        let run = try #require(segmentableRun(messages[...]))
        let bytes = Array(messages.prefix(run.count).joined())
        #expect(sender.sendDatagram(bytes, segmentSize: run.segmentSize) == .done(bytes.count))
        var received: [ReceivedDatagram] = []
        while received.count < run.count { received += try receiver.receiveDatagrams() }
        #expect(received.map(\.bytes) == Array(messages.prefix(run.count)))
    }

    @Test(
        "a run is of one size, the last perhaps shorter",
        arguments: [
            ([5, 5, 5], 3, 5), ([5, 5, 3], 3, 5), ([5, 3, 5], 2, 5), ([5, 5, 6], 2, 5),
            ([5, 5, 0, 5], 2, 5), ([1_200, 1_200], 2, 1_200),
            ([30_000, 30_000, 30_000], 2, 30_000),
            (Array(repeating: 10, count: 100), 64, 10),
            (Array(repeating: 2_000, count: 100), 32, 2_000),
        ] as [([Int], Int, Int)])
    func run(sizes: [Int], count: Int, size: Int) throws {
        let run = try #require(segmentableRun(sizes.map { [UInt8](repeating: 0, count: $0) }[...]))
        #expect(run.count == count)
        #expect(run.segmentSize == size)
    }

    @Test(
        "where nothing would be saved there is no run",
        arguments: [
            [], [5], [5, 6], [0], [0, 0], [0, 5], [5, 0], [40_000, 40_000], [65_507, 1],
        ])
    func noRun(sizes: [Int]) {
        #expect(segmentableRun(sizes.map { [UInt8](repeating: 0, count: $0) }[...]) == nil)
    }
}
