internal import TowpathReactor
internal import TowpathTLS
internal import TowpathWire

/// From the options of ``TLS`` to an engine for one connection.
extension TLS {
    /// As a client's, checked.
    func clientConfiguration() throws(TLSError) -> TLSConfiguration {
        var configuration = configuration
        configuration.role = .client
        switch authentication {
        case nil, .required?: break
        case .some(.none): configuration.verification = .none
        case .optional?:
            throw TLSError(
                .configuration, "a client's server must prove who it is, or need not: not optional")
        }
        return configuration
    }

    /// A client's engine.
    func engine(_ context: TLSContext, for endpoint: Endpoint?) throws(TLSError) -> TLSEngine {
        let configuration = context.configuration
        let peerName = try peerName(for: endpoint)
        guard configuration.resumesSessions, !configuration.hasOwnVerification, let endpoint else {
            return try TLSEngine(context, to: peerName)
        }
        let key = TLSSessions.Key(
            configuration: configuration, endpoint: endpoint, peerName: peerName)
        let engine = try TLSEngine(
            context, to: peerName, resuming: TLSSessions.shared.take(for: key))
        engine.onSession = { TLSSessions.shared.keep([$0], for: key) }
        return engine
    }

    /// As a listener's, checked.
    func serverConfiguration() throws(TLSError) -> TLSConfiguration {
        var configuration = configuration
        configuration.role = .server
        configuration.clientAuthentication =
            switch authentication {
            case nil, .some(.none): .none
            case .optional?: .optional
            case .required?: .required
            }
        guard configuration.pins == nil, configuration.verification == .full else {
            throw TLSError(.configuration, "pins are for the certificates of servers")
        }
        return configuration
    }

    /// Whom the certificate must be for.
    private func peerName(for endpoint: Endpoint?) throws(TLSError) -> TLSPeerName? {
        if let name {
            guard let host = try? Host(parsing: name) else {
                throw TLSError(.configuration, "\"\(name)\" is no host name and no address")
            }
            return try Self.peerName(host)
        }
        guard let host = endpoint?.host else { return nil }
        return try Self.peerName(host)
    }

    private static func peerName(_ host: Host) throws(TLSError) -> TLSPeerName {
        switch host.normalized {
        case .ipv4(let address): return .address(address.bytes)
        case .ipv6(let address): return .address(address.bytes)
        case .name(let name): return try .checked(name)
        }
    }
}

extension IPv4Address {
    fileprivate var bytes: [UInt8] {
        stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: rawValue >> $0) }
    }
}

extension IPv6Address {
    fileprivate var bytes: [UInt8] {
        [high, low].flatMap { half in
            stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: half >> $0) }
        }
    }
}
