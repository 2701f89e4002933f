internal import TowpathReactor

/// One socket that is connecting.
final class Attempt: EventHandler {
    private struct State: ~Copyable {
        var socket: Descriptor?
        var token: Token?
    }

    private let number: Int
    private let mailbox: Mailbox
    private let state: Locked<State>

    init(
        _ number: Int, _ socket: consuming Descriptor, on loop: EventLoop, _ mailbox: Mailbox
    ) throws(SystemError) {
        self.number = number
        self.mailbox = mailbox
        state = Locked(State(socket: socket))
        try state.withLock { state throws(SystemError) in
            guard let socket = state.socket.take() else { return }
            state.token = try loop.register(socket, for: [.output], handler: self)
            state.socket = consume socket
        }
    }

    func handle(_ events: ReadyEvents) { mailbox.post(.answered(number)) }

    func deadlineReached(_ tag: UInt8) {}

    /// Takes the socket off the loop; nil if that was done before. The kernel has answered by now,
    /// or the attempt is given up.
    func end(on loop: EventLoop) -> Descriptor? {
        state.withLock { state in
            guard let socket = state.socket.take(), let token = state.token else { return nil }
            loop.deregister(socket, token: token)
            return socket
        }
    }
}
