internal import TowpathReactor
internal import TowpathWire

/// One connection of a listener, from its accept to its end.
extension Listener {
    func serve(
        _ core: ConnectionCore, _ handler: @Sendable (Connection<Top>) async throws -> Void
    ) async {
        core.claim()
        if let security {
            do throws(NetworkError) { try await security.secure(core) } catch {
                await refuse(core, error)
                return end(core)
            }
        }
        if let webSocket, await !upgrade(core, webSocket) { return end(core) }
        let connection = Connection<Top>(core, listener: context, framing: makeFraming?())
        do {
            try await handler(connection)
            await close(core)
        } catch {
            await fail(connection, core, error)
        }
        end(core)
    }

    /// Not inlined, for the reason that `ConnectionCore.secure` gives.
    @inline(never)
    private func refuse(_ core: ConnectionCore, _ error: NetworkError) async {
        if !context.hasEnded, !Task.isCancelled {
            context.post(.handshakeFailed(error, remoteEndpoint: core.remoteEndpoint))
        }
        await core.refuseInsecure()
    }

    private func end(_ core: ConnectionCore) {
        context.live.remove(core)
        if case .streams(let acceptor) = source { acceptor.descriptorFreed() }
    }

    /// In a task of its own, whose memory goes with it: the handler's task lives as long as the connection.
    @inline(never)
    private func upgrade(_ core: ConnectionCore, _ options: WebSocketOptions) async -> Bool {
        let task = Task(executorPreference: core.loop) { await self.accept(core, options) }
        return await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
    }

    private func accept(_ core: ConnectionCore, _ options: WebSocketOptions) async -> Bool {
        do throws(NetworkError) {
            try await core.acceptWebSocket(options)
            return true
        } catch {
            if !context.hasEnded, !Task.isCancelled {
                context.post(.handshakeFailed(error, remoteEndpoint: core.remoteEndpoint))
            }
            await core.close()
            return false
        }
    }

    @inline(never)
    private func close(_ core: ConnectionCore) async {
        if context.drain.isSignalled { await core.closeWebSocket(.init(.goingAway)) }
        await core.close()
    }

    @inline(never)
    private func fail(
        _ connection: Connection<Top>, _ core: ConnectionCore, _ error: any Error
    ) async {
        let remote = connection.remoteEndpoint
        // A WebSocket can say that something went wrong.
        if webSocket != nil, !Task.isCancelled {
            await core.closeWebSocket(.init(.internalServerError))
            await core.close()
        } else {
            connection.abort()
        }
        let isOver = context.hasEnded && (error as? NetworkError)?.code == .closed
        if !isOver, !(error is CancellationError && Task.isCancelled) {
            context.post(.handlerFailed(error, remoteEndpoint: remote))
        }
    }
}
