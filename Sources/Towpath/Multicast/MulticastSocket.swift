internal import TowpathReactor

/// The socket of a multicast group: like a datagram connection's, but without a peer.
final class MulticastSocket: EventHandler {
    private struct State: ~Copyable {
        var socket: Descriptor?
        var token: Token?
        var isReadable = true
        var isReceiving = false
        var receiver: Waiter?
        /// Those who wait until the socket takes more.
        var senders: [Waiter] = []
        /// Where a datagram to a group goes next.
        var sendsThrough: UInt32?
        var budget = TurnBudget()
    }

    private enum Step<Value> {
        case done(Value)
        case failed(NetworkError)
        case blocked(Waiter)
        case spent
    }

    private let loop: EventLoop
    private let family: SocketAddress.Family
    private let port: UInt16
    private let interfaces: [UInt32]
    private let groups: [SocketAddress]
    private let state: Locked<State>

    init(
        _ socket: consuming Descriptor, _ family: SocketAddress.Family, port: UInt16,
        interfaces: [UInt32], groups: [SocketAddress]
    ) throws(SystemError) {
        loop = try EventLoopGroup.shared.nearest()
        self.family = family
        self.port = port
        self.interfaces = interfaces
        self.groups = groups
        var initial = State()
        initial.socket = consume socket
        state = Locked(initial)
        try state.withLock { state throws(SystemError) in
            guard let socket = state.socket.take() else { return }
            state.token = try loop.register(socket, for: [.input], handler: self)
            state.socket = consume socket
        }
    }

    func close() {
        let waiters = state.withLock { state in
            if let socket = state.socket.take(), let token = state.token.take() {
                loop.deregister(socket, token: token)
            }
            return takeReceiver(&state) + takeSenders(&state)
        }
        for waiter in waiters { waiter.finish(.ready) }
    }

    // MARK: Readiness

    func handle(_ events: ReadyEvents) {
        let waiters = state.withLock { state in
            var waiters: [Waiter] = []
            if events.isReadable {
                state.isReadable = true
                waiters += takeReceiver(&state)
            }
            if events.isWritable, !state.senders.isEmpty {
                waiters += takeSenders(&state)
                listen(&state, for: [.input])
            }
            return waiters
        }
        for waiter in waiters { waiter.finish(.ready) }
    }

    func deadlineReached(_ tag: UInt8) {}

    private func takeReceiver(_ state: inout State) -> [Waiter] {
        state.receiver.take().map { [$0] } ?? []
    }

    private func takeSenders(_ state: inout State) -> [Waiter] {
        defer { state.senders = [] }
        return state.senders
    }

    private func listen(_ state: inout State, for events: ReadyEvents) {
        guard let socket = state.socket.take() else { return }
        if let token = state.token { loop.modify(socket, token: token, for: events) }
        state.socket = consume socket
    }

    // MARK: Receiving

    func receive(until deadline: UInt64) async throws -> Datagram {
        if Task.isCancelled { throw CancellationError() }
        var isFirst = true
        while true {
            let step = state.withLock { state -> Step<Datagram> in
                if isFirst, state.isReceiving { return .failed(.receiveInProgress) }
                let step = attempt(&state)
                switch step {
                case .done, .failed: state.isReceiving = false
                case .blocked, .spent: state.isReceiving = true
                }
                return step
            }
            isFirst = false
            switch step {
            case .done(let datagram): return datagram
            case .failed(let error): throw error
            case .spent: await loop.nextTurn()
            case .blocked(let waiter):
                let wake = await waiter.wait(on: loop, until: deadline)
                if wake != .ready { try stopReceiving(wake) }
            }
        }
    }

    private func stopReceiving(_ wake: Wake) throws {
        state.withLock { state in
            state.isReceiving = false
            state.receiver = nil
        }
        if wake == .cancelled { throw CancellationError() }
        throw NetworkError.timedOut(.receive, "nothing came in time; receive again")
    }

    private func attempt(_ state: inout State) -> Step<Datagram> {
        while true {
            guard let socket = state.socket.take() else { return .failed(.closed(.receive)) }
            if state.isReadable, state.budget.isSpent(on: loop) {
                state.socket = consume socket
                return .spent
            }
            let batch = DatagramBatch.current
            let transfer =
                state.isReadable
                ? batch.receive(from: socket, limit: 1, maximumSize: 65_535) : .wouldBlock
            state.socket = consume socket
            switch transfer {
            case .done:
                state.budget.spend(batch.content(0).count)
                if let datagram = datagram(in: batch) { return .done(datagram) }
            case .wouldBlock:
                state.isReadable = false
                let waiter = Waiter()
                state.receiver = waiter
                return .blocked(waiter)
            case .failed(let code):
                return .failed(
                    NetworkError(
                        SystemError(code, "recvmmsg"), .receive, "an earlier datagram failed"))
            }
        }
    }

    /// Nil for a group that somebody else joined: IPv6 delivers a group that was joined on one
    /// interface from all of them.
    private func datagram(in batch: DatagramBatch) -> Datagram? {
        let header = batch.header(0)
        let destination = batch.destination(0, port: port)
        if let (address, interface) = destination, address.isGroup {
            guard interfaces.contains(interface), groups.contains(where: address.isSameHost)
            else { return nil }
        }
        let path = Datagram.Path(
            remote: Endpoint(batch.remoteAddress(0)), local: destination.flatMap { Endpoint($0.0) })
        return Datagram(
            [UInt8](batch.content(0)), header, path, isTruncated: header.isTruncated)
    }

    // MARK: Sending

    /// To every group on every interface.
    func send(_ bytes: [UInt8], until deadline: UInt64) async throws {
        var failure: NetworkError?
        for group in groups {
            do {
                try await send(bytes, to: group, isGroup: true, until: deadline)
            } catch let error as NetworkError where error.code != .timedOut {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }

    func send(
        _ bytes: [UInt8], to address: SocketAddress, isGroup: Bool, until deadline: UInt64
    ) async throws {
        guard isGroup else { return try await send(bytes, to: address, through: nil, deadline) }
        var failure: NetworkError?
        for interface in interfaces {
            do {
                try await send(bytes, to: address, through: interface, deadline)
            } catch let error as NetworkError where error.code != .timedOut {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }

    private func send(
        _ bytes: [UInt8], to address: SocketAddress, through interface: UInt32?,
        _ deadline: UInt64
    ) async throws {
        if Task.isCancelled { throw CancellationError() }
        while true {
            let step = state.withLock { state in
                attempt(&state, bytes, DatagramRoute(remote: address, local: nil), interface)
            }
            switch step {
            case .done: return
            case .failed(let error): throw error
            case .spent: await loop.nextTurn()
            case .blocked(let waiter):
                let wake = await waiter.wait(on: loop, until: deadline)
                if wake != .ready { throw ConnectionCore.error(for: wake) }
            }
        }
    }

    private func attempt(
        _ state: inout State, _ bytes: [UInt8], _ route: DatagramRoute, _ interface: UInt32?
    ) -> Step<Void> {
        guard let socket = state.socket.take() else { return .failed(.closed(.send)) }
        if state.budget.isSpent(on: loop) {
            state.socket = consume socket
            return .spent
        }
        if let interface, interface != state.sendsThrough {
            do throws(SystemError) {
                try socket.sendToGroups(through: interface, family)
                state.sendsThrough = interface
            } catch {
                state.socket = consume socket
                return .failed(NetworkError(error, .send, "not sent"))
            }
        }
        let transfer = bytes.withUnsafeBytes { socket.sendDatagram($0, route) }
        state.socket = consume socket
        switch transfer {
        case .done(let count):
            state.budget.spend(count)
            return .done(())
        case .failed(let code):
            return .failed(NetworkError(SystemError(code, "sendmsg"), .send, "not sent"))
        case .wouldBlock:
            let waiter = Waiter()
            state.senders.append(waiter)
            // Room that came since the send is reported at once.
            listen(&state, for: [.input, .output])
            return .blocked(waiter)
        }
    }
}

extension SocketAddress {
    fileprivate var isGroup: Bool {
        switch family {
        case .ipv4: ipv4 >> 28 == 0xE
        case .ipv6: ipv6.high >> 56 == 0xFF
        case .unix, .other: false
        }
    }

    /// The same address, whatever the port and the interface.
    fileprivate func isSameHost(_ other: SocketAddress) -> Bool {
        guard family == other.family else { return false }
        return family == .ipv4
            ? ipv4 == other.ipv4 : (ipv6.high, ipv6.low) == (other.ipv6.high, other.ipv6.low)
    }
}
