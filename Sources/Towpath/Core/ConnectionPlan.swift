/// What a client's connection is to be: everything its opening needs.
struct ConnectionPlan: Sendable {
    /// The endpoint, or why the text given for it is none: opening then fails with that.
    let endpoint: Result<Endpoint, NetworkError>
    let parameters: Parameters
    let transport: ProtocolStack.Transport

    var isUnix: Bool {
        switch endpoint {
        case .success(.unix), .success(.abstract): true
        case .success(.hostPort), .failure: false
        }
    }

    var connectionTimeout: Duration {
        switch transport {
        case .tcp(let tcp): tcp.connectionTimeout
        case .udp(let udp): udp.connectionTimeout
        }
    }
}
