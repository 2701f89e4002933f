import CTowpathLinux
import Testing
import TowpathReactor

@Suite("TCP information")
struct TCPInformationTests {
    @Test("what was sent is counted at one end, what is unread at the other")
    func counts() throws {
        let ends = try Descriptor.connected()
        #expect(ends.near.send([UInt8](repeating: 1, count: 1_000)) == .done(1_000))
        try ends.far.wait(for: POLLIN)
        let near = try TCPInformation(ends.near)
        let far = try TCPInformation(ends.far)
        #expect(near.bytesSent == 1_000)
        #expect(near.segmentsSent > 0)
        #expect(near.segmentsRetransmitted == 0)
        #expect(near.unsent == 0)
        #expect(near.unread == 0)
        #expect(near.congestionWindow > 0)
        #expect(near.maximumSegment > 500)
        #expect(near.pathMTU > near.maximumSegment)
        #expect(far.bytesReceived == 1_000)
        #expect(far.unread == 1_000)
        _ = ends.far.receive(atMost: 400)
        #expect(try TCPInformation(ends.far).unread == 600)
    }

    @Test("what the peer does not take lies unsent and unacknowledged")
    func unsent() throws {
        let ends = try Descriptor.connected()
        let bytes = [UInt8](repeating: 1, count: 1 << 20)
        while case .done = ends.near.send(bytes) {}
        let information = try TCPInformation(ends.near)
        #expect(information.unacknowledged > 0)
        #expect(information.unsent > 0)
        #expect(information.unacknowledged >= information.unsent)
    }

    @Test("other sockets have none")
    func others() throws {
        let socket = try Descriptor.socket(.unix, .stream)
        #expect(throws: SystemError(EOPNOTSUPP, "getsockopt(TCP_INFO)")) {
            _ = try TCPInformation(socket)
        }
    }
}
