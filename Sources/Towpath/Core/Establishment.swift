internal import TowpathReactor
internal import TowpathWire

/// Opens the socket of a client's connection: resolves the name, races the addresses (RFC 8305) and
/// reports each step. One task drives it; look-ups and attempts report to its mailbox.
struct Establishment {
    private(set) var plan: ConnectionPlan
    private let loop: EventLoop
    /// When the opening began, perhaps with a wait for a path.
    private let start: UInt64
    private let mailbox = Mailbox()
    private(set) var report = EstablishmentReport()
    private var running: [Int: Attempt] = [:]

    init(plan: ConnectionPlan, loop: EventLoop, start: UInt64) {
        self.plan = plan
        self.loop = loop
        self.start = start
    }

    /// The connected socket, by a plan that may have an interface more than the one it was made for.
    /// Cancelling the task ends this with an error; nothing stays open then.
    mutating func run(_ chosen: ConnectionPlan) async throws(NetworkError) -> Descriptor {
        plan = chosen
        defer {
            report.duration = elapsed
            for attempt in running.values { _ = attempt.end(on: loop) }
        }
        switch try plan.endpoint.get() {
        case .hostPort(let host, let port):
            return try await race(to: host, port: port)
        case .unix(let path):
            return try await openUnix(SocketAddress(unix: Array(path.utf8), abstract: false), path)
        case .abstract(let name):
            return try await openUnix(SocketAddress(unix: Array(name.utf8), abstract: true), name)
        }
    }

    /// TLS was negotiated after the socket stood.
    mutating func noteHandshake() {
        report.handshakeDuration = elapsed - report.duration
        report.duration = elapsed
    }

    private var elapsed: Duration { .nanoseconds(MonotonicClock.now - start) }

    private func deadline(_ time: Duration?) -> UInt64 {
        let limit = plan.connectionTimeout
        let (sum, overflow) = start.addingReportingOverflow(
            MonotonicClock.nanoseconds(in: min(time ?? limit, limit)))
        return overflow ? .max : sum
    }

    // MARK: The race

    private mutating func race(to host: Host, port: UInt16) async throws(NetworkError) -> Descriptor
    {
        var race = try resolve(host)
        while true {
            guard !Task.isCancelled else { throw .closed(.connect) }
            switch race.next(now: elapsed) {
            case .connect(let number, let address):
                if let socket = connect(number, to: address, port: port, &race) { return socket }
            case .wait(let until):
                switch await mailbox.next(on: loop, until: deadline(until)) {
                case .resolved(let family, let answer):
                    note(family, answer, &race)
                case .answered(let number):
                    if let socket = settle(number, &race) { return socket }
                case nil:
                    guard elapsed < plan.connectionTimeout else {
                        throw failure(.timedOut, "\(host): not open within the connection timeout")
                    }
                }
            case .exhausted, .done:
                throw exhausted(host)
            }
        }
    }

    private mutating func resolve(_ host: Host) throws(NetworkError) -> ConnectionRace {
        switch host {
        case .ipv4(let address): return known([.v4(address)], .literal)
        case .ipv6(let address): return known([.v6(address)], .literal)
        case .name(let name):
            // A name that was put together by hand was not checked yet.
            do throws(AddressError) { _ = try Host(parsing: name) } catch {
                throw NetworkError(error)
            }
            if let addresses = plan.parameters.resolution(name) {
                return known(addresses, .parameters)
            }
            var race = ConnectionRace()
            for family in [AddressFamily.ipv6, .ipv4] {
                guard plan.parameters.ipVersion ?? family == family else {
                    race.resolved(family, [], now: .zero)
                    continue
                }
                Resolver.shared.lookUp(name, family == .ipv6 ? .ipv6 : .ipv4) { [mailbox] answer in
                    mailbox.post(.resolved(family, answer))
                }
            }
            return race
        }
    }

    private mutating func known(
        _ addresses: [IPAddress], _ source: EstablishmentReport.Resolution.Source
    ) -> ConnectionRace {
        let usable = addresses.filter { plan.parameters.ipVersion ?? $0.family == $0.family }
        for family in [AddressFamily.ipv6, .ipv4] {
            let ofFamily = usable.filter { $0.family == family }
            guard !ofFamily.isEmpty else { continue }
            report.resolutions.append(
                .init(
                    source: source, family: family, addresses: ofFamily, duration: elapsed,
                    error: nil))
        }
        return ConnectionRace(addresses: usable)
    }

    private mutating func note(
        _ family: AddressFamily, _ answer: Resolver.Answer, _ race: inout ConnectionRace
    ) {
        var addresses: [IPAddress] = []
        var error: NetworkError?
        switch answer {
        case .success(let found): addresses = found.compactMap(\.ipAddress)
        case .failure(let failure): error = NetworkError(failure)
        }
        report.resolutions.append(
            .init(
                source: .system, family: family, addresses: addresses, duration: elapsed,
                error: error))
        race.resolved(family, addresses, now: elapsed)
    }

    // MARK: Attempts

    /// Starts an attempt; the socket if it succeeded at once.
    private mutating func connect(
        _ number: Int, to address: IPAddress, port: UInt16, _ race: inout ConnectionRace
    ) -> Descriptor? {
        let endpoint = Endpoint.hostPort(host: Host(address), port: port)
        report.attempts.append(.init(endpoint: endpoint, start: elapsed))
        do throws(NetworkError) {
            guard let target = SocketAddress(address, port: port) else {
                throw NetworkError(
                    .unreachable, .connect, "\(endpoint): no interface has this zone's name")
            }
            let socket = try socket(for: target)
            switch socket.connect(to: target) {
            case .done:
                race.succeeded(number)
                end(number)
                return socket
            case .wouldBlock:
                running[number] = try Attempt.make(number, socket, on: loop, mailbox)
            case .failed(let code):
                throw NetworkError(SystemError(code, "connect"), .connect, "\(endpoint)")
            }
        } catch {
            race.failed(number, now: elapsed)
            end(number, error)
        }
        return nil
    }

    /// An attempt has an answer; the socket if it is yes.
    private mutating func settle(_ number: Int, _ race: inout ConnectionRace) -> Descriptor? {
        guard let socket = running.removeValue(forKey: number)?.end(on: loop) else { return nil }
        let code = socket.connectError()
        guard code != 0 else {
            race.succeeded(number)
            end(number)
            return socket
        }
        let endpoint = report.attempts[number].endpoint
        race.failed(number, now: elapsed)
        end(number, NetworkError(SystemError(code, "connect"), .connect, "\(endpoint)"))
        return nil
    }

    private mutating func end(_ number: Int, _ error: NetworkError? = nil) {
        report.attempts[number].duration = elapsed - report.attempts[number].start
        report.attempts[number].error = error
        report.attempts[number].succeeded = error == nil
    }

    private mutating func openUnix(
        _ address: SocketAddress?, _ name: String
    ) async throws(NetworkError) -> Descriptor {
        guard let address, let endpoint = Endpoint(address) else {
            throw NetworkError(
                .invalidEndpoint, .setup, "a Unix socket's name has 1 to 107 bytes: \(name)")
        }
        report.attempts.append(.init(endpoint: endpoint, start: elapsed))
        while true {
            guard !Task.isCancelled else { throw .closed(.connect) }
            do throws(NetworkError) {
                let socket = try socket(for: address)
                switch socket.connect(to: address) {
                case .done:
                    end(0)
                    return socket
                case .failed(let code):
                    throw NetworkError(SystemError(code, "connect"), .connect, "\(endpoint)")
                case .wouldBlock: break
                }
            } catch {
                end(0, error)
                throw error
            }
            // The listener's backlog is full, and no event tells when it has room: connect(2), EAGAIN.
            guard elapsed < plan.connectionTimeout else {
                throw failure(.timedOut, "\(endpoint): the listener accepts nobody")
            }
            _ = await mailbox.next(on: loop, until: deadline(elapsed + .milliseconds(10)))
        }
    }

    // MARK: Failure

    private func exhausted(_ host: Host) -> NetworkError {
        let errors = report.attempts.compactMap(\.error)
        if let first = errors.first {
            // Where the reasons differ, the last resort's says least: the first address is the best.
            return errors.count == 1 ? first : failure(first.code, "\(host)", first.cause)
        }
        let unresolved = report.resolutions.compactMap(\.error)
        // A temporary failure of one family leaves it open whether the name exists.
        if let error = unresolved.first(where: { $0.code == .resolverUnavailable })
            ?? unresolved.first
        {
            return error
        }
        return NetworkError(
            .nameNotFound, .resolve, "\(host): no address of a family that is allowed")
    }

    /// An error that lists every attempt.
    private func failure(
        _ code: NetworkError.Code, _ subject: String, _ cause: NetworkError.Cause? = nil
    ) -> NetworkError {
        let attempts = report.attempts.map { attempt in
            attempt.error.map { "\($0.message)" } ?? "\(attempt.endpoint): no answer"
        }
        let list = attempts.isEmpty ? "no address was tried" : attempts.joined(separator: "; ")
        return NetworkError(
            code, report.attempts.isEmpty ? .resolve : .connect, "\(subject) (\(list))",
            cause: cause)
    }
}

extension Attempt {
    fileprivate static func make(
        _ number: Int, _ socket: consuming Descriptor, on loop: EventLoop, _ mailbox: Mailbox
    ) throws(NetworkError) -> Attempt {
        do throws(SystemError) {
            return try Attempt(number, socket, on: loop, mailbox)
        } catch {
            throw NetworkError(error, .connect, "the attempt cannot be watched")
        }
    }
}

extension Descriptor {
    /// How an attempt ended, 0 for well. A socket that got itself as its peer (R-01: a port in the
    /// ephemeral range where nobody listens) counts as refused.
    fileprivate func connectError() -> Int32 {
        let code = takeError()
        guard code == 0 else { return code }
        do throws(SystemError) {
            return try localAddress() == remoteAddress() ? SystemError.refused : 0
        } catch {
            return error.code
        }
    }
}
