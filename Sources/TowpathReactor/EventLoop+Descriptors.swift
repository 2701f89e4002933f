internal import CTowpathLinux

/// Who hears of a descriptor's events.
extension EventLoop {
    /// Registers a descriptor, edge-triggered. The loop keeps the handler until `deregister`.
    package func register(
        _ descriptor: borrowing Descriptor, for events: ReadyEvents, handler: any EventHandler
    ) throws(SystemError) -> Token {
        let token = registry.withLock { $0.insert(handler) }
        let result = control(EPOLL_CTL_ADD, descriptor, events, token)
        guard result >= 0 else {
            _ = registry.withLock { $0.remove(token) }
            throw SystemError(Int32(-result), "epoll_ctl")
        }
        return token
    }

    /// Changes the events of a registration; what is ready already is reported again.
    package func modify(
        _ descriptor: borrowing Descriptor, token: Token, for events: ReadyEvents
    ) {
        _ = control(EPOLL_CTL_MOD, descriptor, events, token)
    }

    /// Ends a registration, before the descriptor is closed. An event that was fetched already may
    /// still reach the handler; none reaches the next owner of the number or of the slot.
    package func deregister(_ descriptor: borrowing Descriptor, token: Token) {
        _ = control(EPOLL_CTL_DEL, descriptor, [], token)
        let handler = registry.withLock { $0.remove(token) }
        withExtendedLifetime(handler) {}
    }

    package var registrationCount: Int { registry.withLock { $0.count } }

    private func control(
        _ operation: Int32, _ descriptor: borrowing Descriptor, _ events: ReadyEvents,
        _ token: Token
    ) -> Int {
        shim_epoll_ctl(
            epoll.number, operation, descriptor.number, events.rawValue | SHIM_EPOLLET,
            token.rawValue)
    }
}
