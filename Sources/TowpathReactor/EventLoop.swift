internal import CTowpathLinux
internal import Synchronization

/// One thread, one epoll set, one heap of deadlines, and the executor of the tasks that prefer it.
///
/// Descriptors are registered once, edge-triggered. Work per turn is bounded: at most the jobs that
/// were queued when the turn began, then the events of one `epoll_wait`, then the deadlines that
/// have passed. All methods may be called from any thread unless they say otherwise.
package final class EventLoop: TaskExecutor, Sendable {
    /// What only the loop's thread touches. Behind a pointer, so that access to it is not checked
    /// for exclusivity on each job.
    private struct Confined {
        var jobs = Ring<UnownedJob>()
        /// Continuations whose connection has spent its budget for this turn.
        var deferred: [UnsafeContinuation<Void, Never>] = []
        /// The handlers of one `epoll_wait`, in the order of its events.
        let ready = UnsafeMutableBufferPointer<(any EventHandler)?>.allocate(
            capacity: EventLoop.eventLimit)
        var turn: UInt32 = 0

        init() { ready.initialize(repeating: nil) }
    }

    /// How many events one turn takes from the kernel.
    private static let eventLimit = 64

    private struct Deadline {
        let handler: any EventHandler
        let tag: UInt8
    }

    let epoll: Descriptor
    private let wakeUp: Descriptor
    let registry = Locked(Registry<any EventHandler>())
    private let timers = Locked(TimerHeap<Deadline>())
    private let remoteJobs = Locked([UnownedJob]())
    /// Whether the list above holds anything, to be read without its lock.
    private let hasRemoteJobs = Atomic(false)
    /// The first deadline, `.max` for none, to be read without the timers' lock.
    private let nextDeadline = Atomic<UInt64>(.max)
    private let isSleeping = Atomic(false)
    private let isStopping = Atomic(false)
    /// When the turn in progress began, 0 while the loop waits; kept only while somebody watches.
    private let busySince = Atomic<UInt64>(0)
    private let isWatched = Atomic(false)
    // Written once in init, before any other thread can know of the loop.
    private nonisolated(unsafe) var thread = pthread_t()
    private nonisolated(unsafe) let confined: UnsafeMutablePointer<Confined>

    package init(name: String = "towpath-loop") throws(SystemError) {
        epoll = Descriptor(owning: Int32(try check(shim_epoll_create(), "epoll_create1")))
        wakeUp = Descriptor(owning: Int32(try check(shim_eventfd(), "eventfd")))
        confined = .allocate(capacity: 1)
        confined.initialize(to: Confined())
        // Edge-triggered: every write is a new edge, so the counter is never read.
        let events = SHIM_EPOLLIN | SHIM_EPOLLET
        try check(
            shim_epoll_ctl(epoll.number, EPOLL_CTL_ADD, wakeUp.number, events, 0), "epoll_ctl")
        thread = try Thread.start(name: name) { self.run() }
    }

    deinit {
        confined.pointee.ready.deinitialize()
        confined.pointee.ready.deallocate()
        confined.deinitialize(count: 1)
        confined.deallocate()
    }

    /// Whether the caller runs on this loop's thread.
    package var isCurrent: Bool { pthread_equal(pthread_self(), thread) != 0 }

    // MARK: Jobs

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if isCurrent {
            confined.pointee.jobs.append(job)
        } else {
            remoteJobs.withLock { jobs in
                jobs.append(job)
                hasRemoteJobs.store(true, ordering: .sequentiallyConsistent)
            }
            wake()
        }
    }

    /// Counts the turns; a connection measures its budget by it. Only on the loop's thread.
    package var turn: UInt32 { confined.pointee.turn }

    /// Lets everything else that is ready on the loop go first. Off the loop it returns at once.
    package func nextTurn() async {
        await withUnsafeContinuation { continuation in
            if isCurrent {
                confined.pointee.deferred.append(continuation)
            } else {
                continuation.resume()
            }
        }
    }

    // MARK: Deadlines

    /// Calls `handler.deadlineReached(tag)` once `deadline` has passed; late, never early.
    package func schedule(
        at deadline: UInt64, _ handler: any EventHandler, tag: UInt8
    ) -> TimerID {
        let (timer, isFirst) = timers.withLock { timers in
            let timer = timers.schedule(Deadline(handler: handler, tag: tag), at: deadline)
            let isFirst = deadline < nextDeadline.load(ordering: .relaxed)
            note(timers.next)
            return (timer, isFirst)
        }
        if isFirst, !isCurrent { wake() }
        return timer
    }

    package func cancel(_ timer: TimerID) {
        let deadline = timers.withLock { timers in
            let deadline = timers.cancel(timer)
            note(timers.next)
            return deadline
        }
        withExtendedLifetime(deadline) {}
    }

    /// Whether a deadline has neither been called nor was cancelled.
    package func isScheduled(_ timer: TimerID) -> Bool { timers.withLock { $0.contains(timer) } }

    /// With the timers' lock held.
    private func note(_ next: UInt64?) {
        nextDeadline.store(next ?? .max, ordering: .sequentiallyConsistent)
    }

    package var timerCount: Int { timers.withLock { $0.count } }

    // MARK: The thread

    /// Ends the thread and waits for it. What is registered is let go, and what is queued then never
    /// runs: for loops of one's own, when nothing uses them any more. Not from the loop's own thread.
    package func stop() {
        isStopping.store(true, ordering: .sequentiallyConsistent)
        wake()
        pthread_join(thread, nil)
        // Handlers may hold the loop in turn. They go once the locks are free.
        let registered = registry.withLock { registry in
            defer { registry = Registry() }
            return registry
        }
        let scheduled = timers.withLock { timers in
            defer { timers = TimerHeap() }
            return timers
        }
        withExtendedLifetime((registered, scheduled)) {}
    }

    private func wake() {
        if isSleeping.exchange(false, ordering: .sequentiallyConsistent) {
            shim_eventfd_signal(wakeUp.number)
        }
    }

    private func run() {
        let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: Self.eventLimit)
        defer { events.deallocate() }
        let executor = asUnownedTaskExecutor()
        while !isStopping.load(ordering: .relaxed) {
            runJobs(on: executor)
            let count = wait(events)
            confined.pointee.turn &+= 1
            dispatch(UnsafeBufferPointer(rebasing: events.prefix(max(0, count))))
            fireDeadlines()
            takeRemoteJobs()
            resumeDeferred()
        }
    }

    private func runJobs(on executor: UnownedTaskExecutor) {
        var budget = confined.pointee.jobs.count
        while budget > 0, let job = confined.pointee.jobs.popFirst() {
            job.runSynchronously(on: executor)
            budget -= 1
        }
    }

    private func wait(_ events: UnsafeMutableBufferPointer<epoll_event>) -> Int {
        var timeout: Int32 = 0
        if confined.pointee.jobs.isEmpty, confined.pointee.deferred.isEmpty {
            isSleeping.store(true, ordering: .sequentiallyConsistent)
            // Whoever queued a job before the store above did not see a sleeper and did not wake it.
            if remoteJobs.withLock({ $0.isEmpty }),
                !isStopping.load(ordering: .sequentiallyConsistent)
            {
                timeout = millisecondsToNextDeadline()
            }
            busySince.store(0, ordering: .relaxed)
        }
        // EINTR comes back as a negative count: nothing is ready, the next turn waits again.
        let count = shim_epoll_wait(epoll.number, events.baseAddress, Int32(events.count), timeout)
        isSleeping.store(false, ordering: .relaxed)
        if isWatched.load(ordering: .relaxed) {
            busySince.store(MonotonicClock.now, ordering: .relaxed)
        }
        return count
    }

    /// Rounded up: a timeout of 0.4 ms must not become a busy loop of zeros.
    private func millisecondsToNextDeadline() -> Int32 {
        let next = nextDeadline.load(ordering: .sequentiallyConsistent)
        guard next != .max else { return -1 }
        let now = MonotonicClock.now
        guard next > now else { return 0 }
        return Int32(min((next - now) / 1_000_000 + 1, UInt64(Int32.max)))
    }

    private func dispatch(_ events: UnsafeBufferPointer<epoll_event>) {
        guard let first = events.baseAddress else { return }
        let ready = confined.pointee.ready
        // Resolved in one go: the handlers take the registry's lock themselves.
        registry.withLock { registry in
            for index in events.indices {
                ready[index] = registry[Token(rawValue: shim_epoll_token(first + index))]
            }
        }
        for index in events.indices {
            ready[index].take()?.handle(ReadyEvents(rawValue: first[index].events))
        }
    }

    private func fireDeadlines() {
        guard nextDeadline.load(ordering: .relaxed) != .max else { return }
        let now = MonotonicClock.now
        while let deadline = timers.withLock({ timers in
            let deadline = timers.popExpired(now: now)
            note(timers.next)
            return deadline
        }) {
            deadline.handler.deadlineReached(deadline.tag)
        }
    }

    private func takeRemoteJobs() {
        guard hasRemoteJobs.load(ordering: .relaxed) else { return }
        remoteJobs.withLock { remote in
            hasRemoteJobs.store(false, ordering: .relaxed)
            for job in remote { confined.pointee.jobs.append(job) }
            remote.removeAll(keepingCapacity: true)
        }
    }

    private func resumeDeferred() {
        guard !confined.pointee.deferred.isEmpty else { return }
        for continuation in confined.pointee.deferred { continuation.resume() }
        confined.pointee.deferred.removeAll(keepingCapacity: true)
    }

    // MARK: The watchdog's view

    /// From now on the loop notes when each turn begins.
    func watch() { isWatched.store(true, ordering: .relaxed) }

    /// When the turn in progress began, or 0 while the loop waits.
    var turnBegan: UInt64 { busySince.load(ordering: .relaxed) }
}
