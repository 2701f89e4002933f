import CTowpathLinux
import Testing
import TowpathReactor

@Suite("BR-004: what accept(2) may say")
struct AcceptedTests {
    private enum Kind: Equatable {
        case connection, none
        case passing(Int32)
        case exhausted(Int32)
        case failed(Int32)

        init(_ accepted: consuming Accepted) {
            switch consume accepted {
            case .connection: self = .connection
            case .none: self = .none
            case .passing(let code): self = .passing(code)
            case .exhausted(let code): self = .exhausted(code)
            case .failed(let code): self = .failed(code)
            }
        }
    }

    @Test("no connection waits", arguments: [EAGAIN, EWOULDBLOCK])
    func nothing(code: Int32) {
        #expect(Kind(Accepted.failure(code)) == .none)
        let isNone = Accepted.failure(code).isNone
        #expect(isNone)
    }

    @Test(
        "an error of the connection or of its network passes, and the listener goes on",
        arguments: [
            EINTR, ECONNABORTED, EPROTO, EPERM, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET,
            EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH, ETIMEDOUT,
        ])
    func passing(code: Int32) {
        #expect(Kind(Accepted.failure(code)) == .passing(code))
    }

    @Test("a shortage is waited out", arguments: [EMFILE, ENFILE, ENOBUFS, ENOMEM])
    func exhausted(code: Int32) {
        #expect(Kind(Accepted.failure(code)) == .exhausted(code))
        let isNone = Accepted.failure(code).isNone
        #expect(!isNone)
    }

    /// Of the last three accept(2) says that some kernels return them; those of today do not.
    @Test(
        "what is wrong with the listener itself ends it",
        arguments: [
            EBADF, EFAULT, EINVAL, ENOTSOCK, ENOSR, ESOCKTNOSUPPORT, EPROTONOSUPPORT,
        ])
    func failed(code: Int32) {
        #expect(Kind(Accepted.failure(code)) == .failed(code))
    }

    @Test("a listener gives its connections, then none")
    func accept() throws {
        let listener = try Descriptor.listening()
        #expect(Kind(listener.accept()) == .none)
        let clients = try (0..<3).map { _ in try Client(to: listener.localAddress()) }
        for _ in clients {
            try listener.wait(for: POLLIN)
            #expect(Kind(listener.accept()) == .connection)
        }
        #expect(Kind(listener.accept()) == .none)
    }

    @Test("a connection that was reset in the queue does not disturb the next")
    func resetInQueue() throws {
        let listener = try Descriptor.listening()
        do {
            let first = try Client(to: listener.localAddress())
            try listener.wait(for: POLLIN)
            first.socket.resetOnClose()
        }
        let second = try Client(to: listener.localAddress())
        // Linux still gives the first, dead; other systems say ECONNABORTED.
        let expected = try second.socket.localAddress()
        var remote: SocketAddress?
        while remote != expected {
            try listener.wait(for: POLLIN)
            if case .connection(_, let address) = listener.accept() { remote = address }
        }
    }

    @Test("what does not listen cannot accept")
    func notListening() throws {
        let socket = try Descriptor.socket(.ipv4, .stream)
        #expect(Kind(socket.accept()) == .failed(EINVAL))
    }
}

/// A TCP client whose handshake is over.
private final class Client {
    let socket: Descriptor

    init(to address: SocketAddress) throws {
        socket = try Descriptor.socket(.ipv4, .stream)
        _ = socket.connect(to: address)
        try socket.wait(for: POLLOUT)
    }
}
