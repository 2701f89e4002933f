internal import TowpathReactor
internal import TowpathTLS

/// The contexts of the process, one for each configuration: making one parses certificates.
enum TLSContexts {
    /// More configurations than a service has; a program that makes new ones without end must not keep
    /// them all.
    private static let limit = 64
    private static let contexts = Locked([TLSConfiguration: TLSContext]())

    static func known(_ configuration: TLSConfiguration) -> TLSContext? {
        contexts.withLock { $0[configuration] }
    }

    /// Makes one if need be, which may read files.
    static func context(for configuration: TLSConfiguration) throws(TLSError) -> TLSContext {
        if let known = known(configuration) { return known }
        let new = try TLSContext(configuration)
        let dropped = contexts.withLock { contexts -> [TLSConfiguration: TLSContext] in
            var dropped: [TLSConfiguration: TLSContext] = [:]
            if contexts.count >= limit { swap(&dropped, &contexts) }
            contexts[configuration] = new
            return dropped
        }
        withExtendedLifetime(dropped) {}
        return new
    }
}

/// The sessions that clients can take up again, by everything that the verdict on the peer depended on.
final class TLSSessions: Sendable {
    struct Key: Hashable, Sendable {
        let configuration: TLSConfiguration
        let endpoint: Endpoint
        let peerName: TLSPeerName?
    }

    static let shared = TLSSessions()

    /// So many hosts, and so many tickets of one: a browser's six connections.
    private static let keyLimit = 1_024
    private static let ticketLimit = 6

    private let sessions = Locked([Key: [TLSSession]]())

    func keep(_ new: [TLSSession], for key: Key) {
        let dropped = sessions.withLock { sessions -> [[TLSSession]] in
            var dropped: [[TLSSession]] = []
            if sessions[key] == nil, sessions.count >= Self.keyLimit,
                let other = sessions.keys.first
            {
                dropped.append(sessions.removeValue(forKey: other) ?? [])
            }
            let all = (sessions[key] ?? []) + new
            dropped.append(Array(all.dropLast(Self.ticketLimit)))
            sessions[key] = Array(all.suffix(Self.ticketLimit))
            return dropped
        }
        withExtendedLifetime(dropped) {}
    }

    /// The newest session; one of TLS 1.3 is nobody else's then.
    func take(for key: Key) -> TLSSession? {
        sessions.withLock { sessions in
            guard let newest = sessions[key]?.last else { return nil }
            if newest.isSingleUse {
                sessions[key]?.removeLast()
                if sessions[key]?.isEmpty == true { sessions[key] = nil }
            }
            return newest
        }
    }
}
