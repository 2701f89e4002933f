import CTowpathLinux
import Glibc
import Testing
import TowpathReactor

@Suite("Descriptor")
struct DescriptorTests {
    private func expectFlags(_ number: Int32, _ origin: Comment) {
        #expect(fcntl(number, F_GETFD) & FD_CLOEXEC != 0, origin)
        #expect(fcntl(number, F_GETFL) & O_NONBLOCK != 0, origin)
    }

    @Test("every descriptor is close-on-exec and non-blocking from birth")
    func flags() throws {
        for family in [SocketAddress.Family.ipv4, .ipv6, .unix] {
            for type in [Descriptor.SocketType.stream, .datagram] {
                let socket = try Descriptor.socket(family, type)
                expectFlags(socket.number, "socket \(family) \(type)")
            }
        }
        for type in [Descriptor.SocketType.stream, .datagram] {
            let ends = try Descriptor.joined(type)
            expectFlags(ends.near.number, "pair \(type)")
            expectFlags(ends.far.number, "pair \(type)")
            let copy = try ends.near.duplicate()
            expectFlags(copy.number, "duplicate \(type)")
        }
        let accepted = try Descriptor.connected()
        expectFlags(accepted.far.number, "accept")
    }

    @Test("its socket is closed when its owner lets go")
    func close() throws {
        let near = try Descriptor.joined().keepNear()
        #expect(near.receive() == .end)
    }

    @Test("a descriptor made elsewhere is made non-blocking and close-on-exec, and then owned")
    func adopt() throws {
        var numbers: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, SHIM_SOCK_STREAM, 0, &numbers) == 0)
        let peer = try Descriptor(adopting: numbers[0])
        do {
            let adopted = try Descriptor(adopting: numbers[1])
            #expect(adopted.number == numbers[1])
            expectFlags(adopted.number, "adopted")
            #expect(peer.receive() == .nothing)
        }
        #expect(peer.receive() == .end)
    }

    @Test("what is no descriptor cannot be adopted")
    func adoptFailure() {
        #expect(throws: SystemError(EBADF, "fcntl")) { _ = try Descriptor(adopting: -1) }
    }

    @Test("a duplicate is another number for the same socket, which lives until both are closed")
    func duplicate() throws {
        let (number, far) = try Descriptor.pair(.stream)
        let peer = Descriptor(owning: far)
        do {
            let copy: Descriptor
            do {
                let original = Descriptor(owning: number)
                copy = try original.duplicate()
                #expect(copy.number != original.number)
            }
            #expect(peer.receive() == .nothing)
            #expect(copy.send([1]) == .done(1))
        }
        #expect(peer.receive() == .bytes([1]))
        #expect(peer.receive() == .end)
    }

    @Test("what is no descriptor cannot be duplicated")
    func duplicateFailure() {
        #expect(throws: SystemError(EBADF, "fcntl(F_DUPFD_CLOEXEC)")) {
            let none = Descriptor(owning: -1)
            _ = try none.duplicate()
        }
    }

    @Test("a released number stays open and is the next owner's")
    func release() throws {
        let (near, far) = try Descriptor.pair(.stream)
        let peer = Descriptor(owning: far)
        let number = Descriptor(owning: near).release()
        #expect(number == near)
        #expect(peer.receive() == .nothing)
        do {
            let owner = Descriptor(owning: number)
            #expect(owner.send([2]) == .done(1))
        }
        #expect(peer.receive() == .bytes([2]))
        #expect(peer.receive() == .end)
    }
}
