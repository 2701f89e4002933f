internal import TowpathReactor
internal import TowpathWire

/// Asks the kernel, which answers at once: some microseconds a question, milliseconds for the list of a
/// thousand interfaces.
final class NetlinkClient: Sendable {
    /// A list, and whether it can be trusted.
    struct List {
        var messages: [RouteNetlink] = []
        /// The table changed while it was told.
        var isInterrupted = false
    }

    /// A question and what the kernel said.
    struct Answered {
        let query: RouteQuery
        let answer: PathEvaluator.Answer
    }

    private struct State: ~Copyable {
        var socket: Descriptor
        var sequence: UInt32 = 0
        var buffer = [UInt8](repeating: 0, count: 65_536)
    }

    private let state: Locked<State>

    init(namespace: String?) throws(SystemError) {
        state = Locked(State(socket: try .netlink(groups: [], namespace: namespace)))
    }

    /// Which way a packet would take.
    func ask(_ query: RouteQuery) -> PathEvaluator.Answer {
        do throws(SystemError) {
            let list = try exchange { NetlinkRequest.route(query, sequence: $0) }
            for case .newRoute(let route, _) in list.messages { return .route(route) }
            return .failed(errno: 0)
        } catch {
            return .failed(errno: error.code)
        }
    }

    /// What is known of a neighbour.
    func ask(_ query: NeighborQuery) -> NeighborMessage.State {
        let list = try? exchange { NetlinkRequest.neighbor(query, sequence: $0) }
        for case .newNeighbor(let neighbor) in list?.messages ?? [] { return neighbor.state }
        return []
    }

    /// So many answers always fit into what the kernel keeps for a socket.
    private static let batchSize = 16

    /// Asks many at a time, at less than half the cost; what is missing in the result has no answer.
    func ask(_ queries: [RouteQuery]) -> [Answered] {
        guard queries.count > 1 else { return [] }
        return stride(from: 0, to: queries.count, by: Self.batchSize).flatMap { start in
            askBatch(Array(queries[start..<min(start + Self.batchSize, queries.count)]))
        }
    }

    private func askBatch(_ queries: [RouteQuery]) -> [Answered] {
        state.withLock { state in
            var answers: [Answered] = []
            var requests: [UInt8] = []
            let first = state.sequence &+ 1
            for query in queries {
                state.sequence &+= 1
                requests += NetlinkRequest.route(query, sequence: state.sequence)
            }
            // Of one that was not sent, no answer would ever come.
            guard (try? state.socket.sendNetlink(requests)) != nil else { return [] }
            while answers.count < queries.count, receive(&state, from: first, queries, &answers) {}
            return answers
        }
    }

    /// Takes one datagram; false if none came.
    private func receive(
        _ state: inout State, from first: UInt32, _ queries: [RouteQuery],
        _ answers: inout [Answered]
    ) -> Bool {
        guard case .done(let count) = state.socket.receiveNetlink(into: &state.buffer) else {
            return false
        }
        var messages = NetlinkMessages(state.buffer[..<count])
        while let message = (try? messages.next()) ?? nil {
            let number = Int(message.sequence &- first)
            guard queries.indices.contains(number) else { continue }
            let answer: PathEvaluator.Answer =
                switch try? RouteNetlink(message) {
                case .newRoute(let route, _)?: .route(route)
                case .acknowledgement(let errno, _)?: .failed(errno: errno)
                default: .failed(errno: 0)
                }
            answers.append(Answered(query: queries[number], answer: answer))
        }
        return true
    }

    func list(_ request: (UInt32) -> [UInt8]) throws(SystemError) -> List {
        try exchange(request)
    }

    private func exchange(_ request: (UInt32) -> [UInt8]) throws(SystemError) -> List {
        try state.withLock { state throws(SystemError) in
            state.sequence &+= 1
            try state.socket.sendNetlink(request(state.sequence))
            var list = List()
            while try !receive(&state, into: &list) {}
            return list
        }
    }

    /// Takes one datagram; true once the answer is whole.
    private func receive(_ state: inout State, into list: inout List) throws(SystemError) -> Bool {
        let count: Int
        switch state.socket.receiveNetlink(into: &state.buffer) {
        case .done(let length): count = length
        case .wouldBlock: throw .malformed
        case .failed(let code): throw SystemError(code, "recvmsg")
        }
        var messages = NetlinkMessages(state.buffer[..<count])
        while let message = try next(&messages) {
            // What is left of an earlier answer.
            guard message.sequence == state.sequence else { continue }
            if message.flags.contains(.dumpInterrupted) { list.isInterrupted = true }
            switch try parse(message) {
            case .done(let errno), .acknowledgement(let errno, _):
                guard errno == 0 else { throw SystemError(errno, "netlink") }
                return true
            case let other:
                list.messages.append(other)
                if !message.flags.contains(.multipart) { return true }
            }
        }
        return false
    }

    private func next(_ messages: inout NetlinkMessages) throws(SystemError) -> NetlinkMessage? {
        do throws(NetlinkError) { return try messages.next() } catch { throw .malformed }
    }

    private func parse(_ message: NetlinkMessage) throws(SystemError) -> RouteNetlink {
        do throws(NetlinkError) { return try RouteNetlink(message) } catch { throw .malformed }
    }
}

extension SystemError {
    /// The kernel's answer makes no sense.
    fileprivate static var malformed: SystemError { SystemError(Self.badMessage, "netlink") }
}
