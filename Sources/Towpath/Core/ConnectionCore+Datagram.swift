internal import TowpathReactor

/// Datagrams, over a socket of one's own or a UDP listener's.
extension ConnectionCore {
    // MARK: Receiving

    /// The next datagram; nil once no more will come. An error here passes: the connection stays.
    func takeDatagram(_ state: inout State) -> Step<Datagram?> {
        guard state.phase == .ready else {
            switch state.phase {
            case .setup, .preparing, .securing, .upgrading: return .notOpen
            case .ready, .failed, .closing, .closed:
                return .failed(state.failure ?? .closed(.receive))
            }
        }
        if let datagram = state.rare?.datagrams.popFirst() { return .done(datagram) }
        if state.inputEnded { return .done(nil) }
        guard state.isReadable else { return .blocked }
        if kind == .peer {
            state.isReadable = false
            return .blocked
        }
        if state.budget.isSpent(on: loop) { return .spent }
        return readDatagram(&state)
    }

    private func readDatagram(_ state: inout State) -> Step<Datagram?> {
        let batch = DatagramBatch.current
        switch state.descriptor.receive(into: batch, maximumSize: udp.maximumReceiveSize) {
        case .done:
            state.budget.spend(batch.content(0).count)
            let header = batch.header(0)
            let path = datagramPath(&state, batch)
            for datagram in Datagram.others(in: batch.content(0), header, path) {
                state.orMakeRare.datagrams.append(datagram)
            }
            return .done(Datagram.first(in: batch.content(0), header, path))
        case .wouldBlock:
            state.isReadable = false
            return .blocked
        case .failed(let code):
            return .failed(
                NetworkError(SystemError(code, "recvmmsg"), .receive, "an earlier datagram failed"))
        }
    }

    /// The addresses of a socket of one's own, which stay the same.
    private func datagramPath(
        _ state: inout State, _ batch: DatagramBatch
    ) -> Datagram.Path {
        if let path = state.rare?.path { return path }
        // A Unix socket's peer need not have a name.
        let path = Datagram.Path(
            remote: Endpoint(batch.remoteAddress(0)) ?? plan.flatMap { try? $0.endpoint.get() },
            local: state.descriptor.localAddress().flatMap { Endpoint($0) })
        state.orMakeRare.path = path
        return path
    }

    /// What the hub received for this peer.
    func deliver(
        _ content: UnsafeRawBufferPointer, _ header: DatagramBatch.Header, limit: Int, now: UInt64
    ) {
        guard let path = peer?.path else { return }
        let reader = state.withLock { state -> UnsafeContinuation<Wake, Never>? in
            guard state.phase == .ready, !state.inputEnded else { return nil }
            let rare = state.orMakeRare
            rare.lastActivity = now
            rare.enqueue(.first(in: content, header, path), limit: limit)
            if header.segmentSize != nil {
                for datagram in Datagram.others(in: content, header, path) {
                    rare.enqueue(datagram, limit: limit)
                }
            }
            state.isReadable = true
            return takeReader(&state)
        }
        reader?.resume(returning: .ready)
    }

    // MARK: Sending

    /// Sends a datagram if that needs no waiting; otherwise `sendDatagram` goes on from here.
    func sendDatagramAtOnce(
        _ bytes: UnsafeRawBufferPointer, _ holdsRight: inout Bool
    ) throws -> Bool {
        if Task.isCancelled { throw CancellationError() }
        let step = state.withLock { state -> SendStep in
            guard state.phase == .ready, state.isWritable, !state.isSending else { return .retry }
            let (step, _) = attemptDatagram(&state, false) { $0.sendDatagram(bytes, peer?.route) }
            return step
        }
        switch step {
        case .done: return true
        case .failed(let error): throw error
        case .blocked, .spent:
            holdsRight = true
            return false
        case .queued, .retry, .notOpen: return false
        }
    }

    func sendDatagram(
        _ bytes: borrowing RawSpan, holdsRight: Bool = false, timeout: Duration?
    ) async throws {
        if !holdsRight, Task.isCancelled { throw CancellationError() }
        var right = SendingRight(timeout, isHeld: holdsRight)
        var isSent = false
        repeat {
            let step = state.withLock { state in
                bytes.withUnsafeBytes { bytes in
                    attemptDatagram(&state, right.isHeld) { $0.sendDatagram(bytes, peer?.route) }
                }
            }
            isSent = try await proceed(step.0, &right)
        } while !isSent
    }

    /// Sends several datagrams, in order, with as few system calls as the kernel allows.
    func sendDatagrams(_ datagrams: [[UInt8]], timeout: Duration?) async throws {
        if Task.isCancelled { throw CancellationError() }
        var rest = datagrams[...]
        var right = SendingRight(timeout)
        while !rest.isEmpty {
            let run = canSegment ? segmentableRun(rest) : nil
            let joined = run.map { Array(rest.prefix($0.count).joined()) }
            let (step, count) = state.withLock { state in
                var cannotSegment = false
                let (step, count) = attemptDatagram(&state, right.isHeld) { socket in
                    guard let run, let joined else {
                        return socket.sendDatagrams(rest, peer?.route)
                    }
                    let transfer = joined.withUnsafeBytes {
                        socket.sendDatagram($0, peer?.route, segmentSize: run.segmentSize)
                    }
                    cannotSegment = transfer.refusesSegments
                    return transfer
                }
                // The device or the kernel cannot cut: send them one by one from now on.
                if cannotSegment {
                    state.cannotSegment = true
                    return (SendStep.retry, 0)
                }
                return (step, run?.count ?? count)
            }
            if try await proceed(step, &right) { rest = rest.dropFirst(count) }
        }
    }

    /// A Unix socket takes no notice of UDP_SEGMENT: what was joined would stay one datagram.
    private var canSegment: Bool {
        state.withLock { !$0.cannotSegment && (peer != nil || $0.remote != nil) }
    }

    private struct SendingRight {
        let deadline: UInt64
        var isHeld: Bool

        init(_ timeout: Duration?, isHeld: Bool = false) {
            deadline = MonotonicClock.deadline(after: timeout)
            self.isHeld = isHeld
        }
    }

    private func attemptDatagram(
        _ state: inout State, _ holdsRight: Bool, _ send: (borrowing Descriptor) -> Transfer
    ) -> (SendStep, Int) {
        if let refusal = refusal(&state, holdsRight: holdsRight) { return (refusal, 0) }
        guard state.isWritable else {
            state.isSending = true
            return (.blocked, 0)
        }
        if state.budget.isSpent(on: loop) {
            state.isSending = true
            return (.spent, 0)
        }
        switch transmit(&state, send) {
        case .done(let count):
            state.budget.spend(count)
            return (.done, count)
        case .wouldBlock:
            state.isWritable = false
            state.isSending = true
            return (.blocked, 0)
        case .failed(let code):
            // Passing: the next datagram may well arrive.
            return (.failed(NetworkError(SystemError(code, "sendmsg"), .send, "not sent")), 0)
        }
    }

    private func transmit(
        _ state: inout State, _ send: (borrowing Descriptor) -> Transfer
    ) -> Transfer {
        guard let peer else { return state.descriptor.map { socket, _ in send(socket) } }
        state.orMakeRare.lastActivity = MonotonicClock.now
        return peer.hub.withSocket(send)
    }

    /// Does what a step asks for, and says whether it was the last of its datagram.
    private func proceed(_ step: SendStep, _ right: inout SendingRight) async throws -> Bool {
        switch step {
        case .done:
            if right.isHeld { endSending() }
            right.isHeld = false
            return true
        case .failed(let error):
            if right.isHeld { endSending() }
            throw error
        case .retry: break
        case .blocked:
            right.isHeld = true
            let wake = await parkWriter(until: right.deadline)
            if wake != .ready {
                endSending()
                throw Self.error(for: wake)
            }
        case .spent:
            right.isHeld = true
            await loop.nextTurn()
        case .queued:
            let wake = await waitForTheRight(until: right.deadline)
            guard wake == .ready else { throw Self.error(for: wake) }
            right.isHeld = true
        case .notOpen:
            try await open(until: right.deadline, .send)
        }
        return false
    }

    private var udp: UDP {
        if case .udp(let udp) = plan?.transport { return udp }
        return peer?.hub.udp ?? UDP()
    }

    /// The largest datagram that goes through unfragmented, by what the kernel knows of the path now.
    func maximumDatagramSize() throws(NetworkError) -> Int {
        guard let peer else {
            return try onSocket(.setup) { socket throws(SystemError) in
                try socket.maximumDatagramSize()
            }
        }
        do throws(SystemError) { return try Descriptor.pathMaximum(to: peer.route.remote) } catch {
            throw NetworkError(error, .setup, "no path")
        }
    }

    var droppedDatagramCount: Int { state.withLock { $0.rare?.droppedDatagramCount ?? 0 } }
}

extension ConnectionCore.Rare {
    func enqueue(_ datagram: Datagram, limit: Int) {
        if datagrams.count < limit {
            datagrams.append(datagram)
        } else {
            droppedDatagramCount += 1
        }
    }
}

extension Optional where Wrapped == Descriptor, Wrapped: ~Copyable {
    fileprivate borrowing func receive(into batch: DatagramBatch, maximumSize: Int) -> Transfer {
        switch self {
        case .some(let socket): batch.receive(from: socket, limit: 1, maximumSize: maximumSize)
        case .none: .wouldBlock
        }
    }
}
