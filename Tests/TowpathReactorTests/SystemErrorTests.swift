import CTowpathLinux
import Testing
import TowpathReactor

@Suite("System error")
struct SystemErrorTests {
    @Test("an error names its call, its reason and its number")
    func description() {
        #expect(
            SystemError(ECONNREFUSED, "connect").description
                == "connect: Connection refused (errno 111)")
    }

    @Test(
        "the errno values that mean something are sorted",
        arguments: [
            (.refused, [ECONNREFUSED]), (.reset, [ECONNRESET, EPIPE, ECONNABORTED, ENOTCONN]),
            (.timedOut, [ETIMEDOUT]),
            (.unreachable, [ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, ENODEV, ENONET]),
            (.addressInUse, [EADDRINUSE]), (.addressUnavailable, [EADDRNOTAVAIL]),
            (.notPermitted, [EACCES, EPERM]), (.noDescriptors, [EMFILE, ENFILE]),
            (.noMemory, [ENOBUFS, ENOMEM]), (.messageTooLong, [EMSGSIZE]),
            (.noSuchFile, [ENOENT]), (.other, [EINVAL, EBADF, 0, -1, 4_095]),
        ] as [(SystemError.Kind, [Int32])])
    func kinds(kind: SystemError.Kind, codes: [Int32]) {
        for code in codes { #expect(SystemError(code, "call").kind == kind, "errno \(code)") }
    }
}

@Suite("Transfer")
struct TransferTests {
    @Test("a call that could not go on would block, and is no failure")
    func wouldBlock() throws {
        let ends = try Descriptor.joined()
        #expect(ends.near.receive() == .nothing)
    }

    @Test("a call that failed gives its errno")
    func failed() throws {
        let socket = try Descriptor.socket(.ipv4, .stream)
        #expect(socket.receive() == .failed(ENOTCONN))
    }

    @Test("a call that moved nothing is done all the same")
    func zero() throws {
        let ends = try Descriptor.joined()
        #expect(ends.near.send([]) == .done(0))
    }

    @Test("a full socket takes a part and then would block")
    func full() throws {
        let ends = try Descriptor.joined()
        let bytes = [UInt8](repeating: 7, count: 1 << 24)
        guard case .done(let count) = ends.near.send(bytes) else {
            Issue.record("the first send took nothing")
            return
        }
        #expect(count > 0 && count < bytes.count)
        #expect(ends.near.send(bytes) == .wouldBlock)
        #expect(ends.far.receiveAll().count == count)
    }
}
