import Glibc
import Testing
import Towpath

@Suite("Closing", .timeLimit(.minutes(1)))
struct ConnectionCloseTests {
    @Test("close sends what was accepted, and no reset though input lies unread")
    func closeWithUnreadInput() async throws {
        let (near, peer) = try await Streams.connected()
        try await peer.send([UInt8](repeating: 1, count: 100_000))
        let gate = try StreamGate()
        let reader = try await peer.reading(behind: gate)
        let bytes = Streams.pattern(Streams.large)
        let sender = await Streams.parked(on: near) { try await near.send(bytes) }
        await Streams.closing(near, opening: gate)
        try await sender.value
        Streams.expect(try await reader.value, toBe: bytes)
        #expect(near.state == .cancelled)
    }

    @Test("close finishes the sends in progress and in the queue", arguments: StreamLink.allCases)
    func closeWhileSending(link: StreamLink) async throws {
        let (near, peer) = try await link.peer()
        let bytes = [UInt8](repeating: 1, count: Streams.large)
        let first = await Streams.parked(on: near) { try await near.send(bytes) }
        let second = await Streams.parked(on: near) { try await near.send([2]) }
        let gate = try StreamGate()
        let reader = try await peer.reading(behind: gate)
        await Streams.closing(near, opening: gate)
        await #expect(throws: Streams.error(.closed)) { try await near.send([3]) }
        Streams.expect(try await reader.value, toBe: bytes + [2])
        try await first.value
        try await second.value
    }

    @Test("close finishes what a cancelled send left", arguments: StreamLink.allCases)
    func closeWhileOwing(link: StreamLink) async throws {
        let (near, peer) = try await link.peer()
        let bytes = Streams.pattern(Streams.large)
        let call = await Streams.parked(on: near) { try await near.send(bytes) }
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        let gate = try StreamGate()
        let reader = try await peer.reading(behind: gate)
        await Streams.closing(near, opening: gate)
        Streams.expect(try await reader.value, toBe: bytes)
    }

    @Test("close sends all to a peer that has finished and stays open")
    func closeAfterPeersEnd() async throws {
        let (near, peer) = try await Streams.connected()
        peer.finish()
        #expect(try await near.receive() == nil)
        let bytes = [UInt8](repeating: 1, count: Streams.large)
        let sender = await Streams.parked(on: near) { try await near.send(bytes) }
        let gate = try StreamGate()
        let reader = try await peer.reading(behind: gate, closing: false)
        await Streams.closing(near, opening: gate)
        Streams.expect(try await reader.value, toBe: bytes)
        try await sender.value
    }

    @Test("after 2 s a peer that never reads sees that bytes were dropped")
    func peerThatNeverReads() async throws {
        let (near, peer) = try await Streams.connected()
        let bytes = [UInt8](repeating: 1, count: Streams.large)
        let call = await Streams.parked(on: near) { try await near.send(bytes) }
        await near.close()
        await #expect(throws: Streams.error(.closed)) { try await call.value }
        let (received, code) = try await peer.receiveToTheEnd()
        #expect(received.count < bytes.count)
        #expect(code == ECONNRESET)
    }

    @Test("after 2 s a peer that never closes is left", arguments: StreamLink.allCases)
    func peerThatNeverCloses(link: StreamLink) async throws {
        let (near, peer) = try await link.peer()
        try await near.send([1, 2])
        await near.close()
        #expect(near.state == .cancelled)
        #expect(try await peer.receiveAll() == [1, 2])
    }

    @Test("input that comes while closing is discarded")
    func discards() async throws {
        let (near, peer) = try await Streams.connected()
        // More than the kernel holds: it must be read away.
        let bytes = [UInt8](repeating: 1, count: 8_000_000)
        let gate = try StreamGate()
        let sender = try await peer.sending(bytes, behind: gate)
        await Streams.closing(near, opening: gate)
        #expect(try await sender.value.isEmpty)
        #expect(near.state == .cancelled)
    }

    @Test("every caller of close waits for the same end")
    func closeTwice() async throws {
        let (near, peer) = try await Streams.connected()
        let first = await Streams.parked(on: near, turns: 1) { await near.close() }
        let second = await Streams.parked(on: near, turns: 1) { await near.close() }
        peer.close()
        try await first.value
        try await second.value
        await near.close()
        near.abort()
        #expect(near.state == .cancelled)
    }

    @Test("close in a cancelled task aborts", arguments: [true, false])
    func closeCancelled(beforehand: Bool) async throws {
        let (near, peer) = try await Streams.connected()
        let closing = await Streams.parked(on: near) {
            if beforehand { withUnsafeCurrentTask { $0?.cancel() } }
            await near.close()
        }
        closing.cancel()
        try await closing.value
        #expect(near.state == .cancelled)
        if beforehand {
            #expect(try await peer.receiveToTheEnd().code == ECONNRESET)
        } else {
            // The FIN was out already; the next byte meets the reset.
            #expect(try await peer.receiveAll().isEmpty)
            await #expect(throws: (any Error).self) {
                while true { try await peer.send([1]) }
            }
        }
    }

    @Test("abort resets, and drops what was not sent")
    func abort() async throws {
        let (near, peer) = try await Streams.connected()
        let bytes = [UInt8](repeating: 1, count: Streams.large)
        let call = await Streams.parked(on: near) { try await near.send(bytes) }
        near.abort()
        await #expect(throws: Streams.error(.closed)) { try await call.value }
        #expect(try await peer.receiveToTheEnd().code == ECONNRESET)
        #expect(near.state == .cancelled)
    }

    @Test("dropping the last reference closes at once", arguments: StreamLink.allCases)
    func drop(link: StreamLink) async throws {
        let peer = try await sentAndDropped([1, 2], link)
        #expect(try await peer.receiveAll() == [1, 2])
    }

    private func sentAndDropped(_ bytes: [UInt8], _ link: StreamLink) async throws -> StreamPeer {
        let (near, peer) = try await link.peer()
        try await near.send(bytes)
        return peer
    }

    @Test("dropping a connection that owes bytes shows as a reset")
    func dropOwing() async throws {
        let peer = try await owedAndDropped()
        let (received, code) = try await peer.receiveToTheEnd()
        #expect(received.count < Streams.large)
        #expect(code == ECONNRESET)
    }

    private func owedAndDropped() async throws -> StreamPeer {
        let (near, peer) = try await Streams.connected()
        let bytes = [UInt8](repeating: 1, count: Streams.large)
        let call = await Streams.parked(on: near) { try await near.send(bytes) }
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        return peer
    }

    @Test("a call that waits keeps the connection")
    func parkedCallKeeps() async throws {
        let (near, peer) = try StreamPeer.joined()
        let call = Task { try await near.receive() }
        _ = consume near
        try await peer.send([1])
        #expect(try await call.value == [1])
        #expect(try await peer.receiveAll().isEmpty)
    }
}
