/// What a client's connection is to be: everything its opening needs.
///
/// A class, so that the many connections without one pay only for a pointer.
final class ConnectionPlan: Sendable {
    /// The endpoint, or why the text given for it is none: opening then fails with that.
    let endpoint: Result<Endpoint, NetworkError>
    let parameters: Parameters
    let transport: ProtocolStack.Transport
    let tls: TLS?
    let webSocket: WebSocketOptions?

    init(
        endpoint: Result<Endpoint, NetworkError>, parameters: Parameters,
        stack: ProtocolStack
    ) {
        self.endpoint = endpoint
        self.parameters = parameters
        transport = stack.transport
        tls = stack.tls
        webSocket = stack.webSocket
    }

    /// The same by one interface.
    func bound(to interface: String) -> ConnectionPlan {
        ConnectionPlan(
            endpoint: endpoint, parameters: parameters.requiredInterface(interface),
            stack: ProtocolStack(transport: transport, tls: tls, webSocket: webSocket))
    }

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
