/// Opens a connection for the time of `body`, which runs on the connection's event loop from its first
/// wait on.
///
/// The connection is closed on every way out: in good order if `body` returns, at once if it throws or
/// the task is cancelled. See ``Connection/close()``. Work that blocks in `body` stalls the loop.
public func withConnection<Top: NetworkProtocol, Result>(
    to endpoint: Endpoint, parameters: Parameters = Parameters(),
    @ProtocolStackBuilder<Top> _ stack: () -> Top,
    body: (Connection<Top>) async throws -> Result
) async throws -> Result {
    try await withConnection(Connection(to: endpoint, parameters: parameters, stack), body)
}

/// Opens a connection to the endpoint that a text names, for the time of `body`.
///
/// See ``Connection/init(to:parameters:_:)-(String,_,_)`` for the text's forms.
public func withConnection<Top: NetworkProtocol, Result>(
    to text: String, parameters: Parameters = Parameters(),
    @ProtocolStackBuilder<Top> _ stack: () -> Top,
    body: (Connection<Top>) async throws -> Result
) async throws -> Result {
    try await withConnection(Connection(to: text, parameters: parameters, stack), body)
}

private func withConnection<Top: NetworkProtocol, Result>(
    _ connection: Connection<Top>, _ body: (Connection<Top>) async throws -> Result
) async throws -> Result {
    do {
        let result = try await withTaskExecutorPreference(connection.executor) {
            try await body(connection)
        }
        await connection.close()
        return result
    } catch {
        connection.abort()
        throw error
    }
}
