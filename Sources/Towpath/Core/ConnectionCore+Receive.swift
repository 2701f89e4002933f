internal import TowpathReactor

/// Receiving. Bytes go from the kernel to the caller, and into the buffer only where a call wants
/// more of them than there are.
extension ConnectionCore {
    /// What one attempt under the lock came to.
    enum Step<Value> {
        case done(Value)
        case failed(NetworkError)
        /// Nothing there: park.
        case blocked
        /// The turn's share is used up: go on in the next one.
        case spent
        /// The connection is still to be opened.
        case notOpen

        var isOver: Bool {
            switch self {
            case .done, .failed: true
            case .blocked, .spent, .notOpen: false
            }
        }
    }

    /// Repeats `attempt` until it is over, waiting in between for what it lacks.
    ///
    /// Every byte of this function's frame is paid by each idle connection.
    func receive<Value>(
        _ timeout: Duration?, _ attempt: (inout State) -> Step<Value>
    ) async throws -> Value {
        // One that only looks cannot wait for the loop to tell what the kernel already has.
        if let timeout, timeout <= .zero { state.withLock { $0.isReadable = true } }
        return try await receive(until: MonotonicClock.deadline(after: timeout), attempt)
    }

    /// - Parameter isHandshake: Whether this is the opening's own read, which those of the user wait for.
    @inline(__always)
    func receive<Value>(
        until deadline: UInt64, isHandshake: Bool = false,
        _ attempt: (inout State) -> Step<Value>
    ) async throws -> Value {
        var isFirst = true
        while true {
            switch try step(isFirst, isHandshake, attempt) {
            case .done(let value):
                return value
            case .failed(let error):
                throw error
            case .blocked where isOwnedByCurrentTask:
                // The plain function hops to the generic executor first, and every hop takes the
                // task's status lock.
                let wake = await _unsafeInheritExecutor_withUnsafeContinuation {
                    installReader($0, deadline)
                }
                try afterPark(isHandshake, wake)
            case .blocked:
                try afterPark(isHandshake, await parkReader(until: deadline))
            case .spent:
                await loop.nextTurn()
                // The first time there may be something that this call has not looked at.
                if !isFirst { try afterPark(isHandshake, Self.interruption(deadline) ?? .ready) }
            case .notOpen:
                try await openToReceive(until: deadline)
            }
            isFirst = false
        }
    }

    private func step<Value>(
        _ isFirst: Bool, _ isHandshake: Bool, _ attempt: (inout State) -> Step<Value>
    ) throws -> Step<Value> {
        if isFirst, Task.isCancelled { throw CancellationError() }
        let (step, wakeups) = state.withLock { state -> (Step<Value>, Wakeups?) in
            if isHandshake { return (attempt(&state), nil) }
            if isFirst, state.isReceiving { return (.failed(.receiveInProgress), nil) }
            let step = attempt(&state)
            state.isReceiving = !step.isOver
            return (step, state.webSocket?.takeWakeups())
        }
        if let wakeups { wake(wakeups) }
        if case .failed = step {
            deliverStates()
            // The listener may have cancelled the handler and closed its connection in one go.
            if Task.isCancelled { throw CancellationError() }
        }
        return step
    }

    private func afterPark(_ isHandshake: Bool, _ wake: Wake) throws {
        if wake == .ready { return }
        if !isHandshake { state.withLock { $0.isReceiving = false } }
        if wake == .cancelled { throw CancellationError() }
        throw NetworkError.timedOut(.receive, "nothing came in time; receive again")
    }

    private func openToReceive(until deadline: UInt64) async throws {
        do { try await open(until: deadline, .receive) } catch {
            state.withLock { $0.isReceiving = false }
            throw error
        }
    }

    // MARK: The attempts

    /// Up to `maximum` bytes, at least one; nil at the end.
    func take(_ state: inout State, atMost maximum: Int) -> Step<[UInt8]?> {
        guard maximum > 0 else { return .done([]) }
        if !state.input.isEmpty { return .done(state.input.take(maximum)) }
        if state.readsBulk { return takeBulk(&state, atMost: maximum) }
        let scratch = Self.scratch(maximum)
        return read(&state, into: scratch).map { count in
            count == 0 ? nil : [UInt8](UnsafeRawBufferPointer(rebasing: scratch[..<count]))
        }
    }

    /// While a bulk transfer goes on, straight into the result: copying out of the scratch buffer costs
    /// a tenth of the whole.
    private func takeBulk(_ state: inout State, atMost maximum: Int) -> Step<[UInt8]?> {
        var step = Step<Int>.blocked
        let count = min(maximum, Scratch.byteCount)
        // No whole number of pages: of buffers that lie behind one another in the heap, one would
        // begin a few bytes behind the other within a page (see `ossl_copy`).
        let bytes = [UInt8](unsafeUninitializedCapacity: count + 512) {
            step = read(
                &state, into: UnsafeMutableRawBufferPointer(start: $0.baseAddress, count: count))
            if case .done(let count) = step { $1 = count }
        }
        // The transfer has ended: the result keeps no more memory than it needs.
        let result = state.readsBulk ? bytes : bytes.withUnsafeBytes { [UInt8]($0) }
        return step.map { $0 == 0 ? nil : result }
    }

    /// Fills as much of `target` as there is; nil at the end.
    func take(_ state: inout State, into target: UnsafeMutableRawBufferPointer) -> Step<Int?> {
        guard target.count > 0 else { return .done(0) }
        if !state.input.isEmpty { return .done(state.input.take(into: target)) }
        return read(&state, into: target).map { $0 == 0 ? nil : $0 }
    }

    /// At least `minimum` bytes, fewer only at the end, and no more than `maximum`.
    func take(_ state: inout State, atLeast minimum: Int, atMost maximum: Int) -> Step<[UInt8]?> {
        guard maximum > 0 else { return .done([]) }
        let step = gather(&state, upTo: max(1, minimum), readingAtMost: maximum)
        return step.map { $0 == 0 ? nil : state.input.take(maximum) }
    }

    /// Exactly `count` bytes; at an early end they stay to be read.
    func take(_ state: inout State, exactly count: Int) -> Step<[UInt8]> {
        guard count > 0 else { return .done([]) }
        let step = gather(&state, upTo: count, readingAtMost: count)
        if case .done(let gathered) = step, gathered < count {
            return .failed(
                NetworkError(
                    .endOfStream, .receive,
                    "the stream ended after \(gathered) of \(count) bytes; they can still be read"))
        }
        return step.map { _ in state.input.take(count) }
    }

    /// Everything up to and including the delimiter. `searched` is where the next search begins.
    func take(
        _ state: inout State, until delimiter: [UInt8], limit: Int, searched: inout Int
    ) -> Step<[UInt8]> {
        while true {
            if let end = state.input.end(of: delimiter, from: searched), end <= limit {
                return .done(state.input.take(end))
            }
            searched = state.input.count
            guard searched < limit else {
                return .failed(
                    NetworkError(
                        .limitExceeded, .receive,
                        "no delimiter within \(limit) bytes; they can still be read"))
            }
            let step = gather(&state, upTo: searched + 1, readingAtMost: limit)
            guard case .done(let gathered) = step else { return step.map { _ in [] } }
            guard gathered > searched else {
                return .failed(
                    NetworkError(
                        .endOfStream, .receive,
                        "the stream ended after \(gathered) bytes without the delimiter;"
                            + " they can still be read"))
            }
        }
    }

    /// Reads until `count` bytes lie in the buffer or the stream has ended, and says how many do.
    private func gather(
        _ state: inout State, upTo count: Int, readingAtMost maximum: Int
    ) -> Step<Int> {
        var calls = 0
        while state.input.count < count {
            // On any thread, since the loop may wait for the lock.
            guard calls < TurnBudget.callLimit else { return .spent }
            calls += 1
            let scratch = Self.scratch(maximum - state.input.count)
            switch read(&state, into: scratch) {
            case .done(0): return .done(state.input.count)
            case .done(let new): state.input.append(.init(rebasing: scratch[..<new]))
            case let other: return other
            }
        }
        return .done(state.input.count)
    }

    /// One recv(2) into a target that is not empty; 0 is the end of the stream.
    func read(
        _ state: inout State, into target: UnsafeMutableRawBufferPointer
    ) -> Step<Int> {
        switch state.phase {
        case .ready, .upgrading: break
        case .setup, .preparing, .securing: return .notOpen
        case .failed, .closing, .closed: return .failed(state.failure ?? .closed(.receive))
        }
        if state.inputEnded { return state.failure.map { .failed($0) } ?? .done(0) }
        if let tls = state.tls { return read(&state, tls, into: target) }
        guard state.isReadable else { return .blocked }
        if state.budget.isSpent(on: loop) { return .spent }
        switch state.descriptor?.receive(into: target) ?? .wouldBlock {
        case .done(let count) where count > 0:
            state.budget.spend(count)
            state.readsBulk = count >= Self.bulkThreshold
            if count < target.count, !state.distrustsShortReads { state.isReadable = false }
            return .done(count)
        case .done:
            state.inputEnded = true
            // A send may have met the reset first: then this is no clean end.
            return state.failure.map { .failed($0) } ?? .done(0)
        case .wouldBlock:
            if state.mayDeferConnect { connectNow(&state) }
            state.isReadable = false
            return .blocked
        case .failed(let code):
            return .failed(receiveFailed(&state, code))
        }
    }

    /// The kernel tells an error once; whoever meets it keeps it.
    func receiveFailed(_ state: inout State, _ code: Int32) -> NetworkError {
        state.inputEnded = true
        let error = NetworkError(SystemError(code, "recv"), .receive, "receive failed")
        fail(&state, error)
        return state.failure ?? error
    }

    /// From this size on the copy costs more than the larger allocation.
    static let bulkThreshold = 16_384

    private static func scratch(_ maximum: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(
            start: Scratch.buffer, count: min(maximum, Scratch.byteCount))
    }
}

extension ConnectionCore.Step {
    func map<Other>(_ transform: (Value) -> Other) -> ConnectionCore.Step<Other> {
        switch self {
        case .done(let value): .done(transform(value))
        case .failed(let error): .failed(error)
        case .blocked: .blocked
        case .spent: .spent
        case .notOpen: .notOpen
        }
    }
}
