internal import Synchronization

/// The process's event loops: made at first use, as many as the process may use cores, and alive as
/// long as the process.
package final class EventLoopGroup: Sendable {
    package static let shared = EventLoopGroup(count: ProcessorCount.usable)

    package let count: Int
    private let loops = Locked([EventLoop]())
    private let rotation = EventLoopRotation()

    package init(count: Int) {
        self.count = count
    }

    /// All loops. Throws where epoll, eventfd or a thread cannot be had; the next call tries again.
    package func all() throws(SystemError) -> [EventLoop] {
        try loops.withLock { loops throws(SystemError) in
            while loops.count < count {
                loops.append(try EventLoop(name: "towpath-loop-\(loops.count)"))
            }
            return loops
        }
    }

    /// The caller's own loop if it runs on one, otherwise the loops in turn.
    package func nearest() throws(SystemError) -> EventLoop {
        if let own = try all().first(where: \.isCurrent) { return own }
        return try next()
    }

    /// The loops in turn.
    package func next() throws(SystemError) -> EventLoop {
        rotation.next(of: try all())
    }
}

/// The loops in turn, for one who deals: a rotation that is shared falls into step with others who take
/// from it, such as a client in the same process for each connection that a listener accepts.
package final class EventLoopRotation: Sendable {
    private let turn = Atomic<UInt64>(0)

    package init() {}

    package func next(of loops: [EventLoop]) -> EventLoop {
        let turn = turn.wrappingAdd(1, ordering: .relaxed).oldValue
        return loops[Int(turn % UInt64(loops.count))]
    }
}
