import TestSupport
import Testing
import TowpathReactor

@Suite("Event loop: jobs", .timeLimit(.minutes(1)))
struct EventLoopTests {
    @Test("a task that prefers the loop runs on its thread, after each suspension too")
    func current() async throws {
        try await withLoop { loop in
            #expect(!loop.isCurrent)
            let task = Task(executorPreference: loop) {
                var places = [loop.isCurrent]
                await Task.yield()
                places.append(loop.isCurrent)
                await withTaskGroup { group in group.addTask { await Task.yield() } }
                places.append(loop.isCurrent)
                return places
            }
            #expect(await task.value == [true, true, true])
            #expect(!loop.isCurrent)
        }
    }

    @Test("a loop knows itself from others")
    func other() async throws {
        try await withLoop { first in
            try await withLoop { second in
                let places = try await first.run { [first.isCurrent, second.isCurrent] }
                #expect(places == [true, false])
            }
        }
    }

    @Test("jobs queued from many threads all run")
    func remoteJobs() async throws {
        let counter = Shared(0)
        try await withLoop { loop in
            await withTaskGroup { group in
                for _ in 0..<8 {
                    group.addTask {
                        for _ in 0..<500 {
                            await Task(executorPreference: loop) {
                                counter.withLock { $0 += loop.isCurrent ? 1 : 0 }
                            }.value
                        }
                    }
                }
            }
        }
        #expect(counter.withLock { $0 } == 4_000)
    }

    @Test("jobs queued by one thread run in their order")
    func order() async throws {
        try await withLoop { loop in
            let gate = Gate()
            let numbers = Inbox<Int>()
            Task(executorPreference: loop) { gate.wait() }
            for number in 0..<100 {
                Task(executorPreference: loop) { numbers.send(number) }
            }
            gate.open()
            let order = try await numbers.next(100)
            #expect(order == Array(0..<100))
        }
    }

    @Test("jobs that the loop queues for itself run in their order, after the one that queues")
    func ownJobs() async throws {
        try await withLoop { loop in
            let numbers = Inbox<Int>()
            try await loop.run {
                for number in 1...50 {
                    Task(executorPreference: loop) { numbers.send(number) }
                }
                numbers.send(0)
            }
            let order = try await numbers.next(51)
            #expect(order == Array(0...50))
        }
    }

    @Test("a loop that sleeps is woken by every job", arguments: [1, 2, 4])
    func wake(callers: Int) async throws {
        try await withLoop { loop in
            try await withThrowingTaskGroup { group in
                for _ in 0..<callers {
                    group.addTask {
                        for _ in 0..<1_000 { try await loop.run {} }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("two loops hand a value to and fro")
    func pingPong() async throws {
        try await withLoop { first in
            try await withLoop { second in
                let task = Task(executorPreference: first) {
                    var count = 0
                    for _ in 0..<1_000 {
                        count += try await second.run { second.isCurrent ? 1 : 0 }
                        count += first.isCurrent ? 1 : 0
                    }
                    return count
                }
                let count = try await task.value
                #expect(count == 2_000)
            }
        }
    }

    @Test("BR-008: an idle loop does not turn")
    func idle() async throws {
        try await withLoop { loop in
            let turns = try await loop.turns(during: .milliseconds(50))
            #expect(turns < 10)
        }
    }

    @Test("who waits for the next turn lets everything else go first")
    func deferred() async throws {
        try await withLoop { loop in
            let (near, far) = try Descriptor.pair(.stream)
            let (socket, peer) = (Holder(near), Holder(far))
            let order = Inbox<String>()
            let recorder = Recorder(
                onEvents: { _ in order.send("event") },
                onDeadline: { _ in order.send("deadline") })
            _ = peer.descriptor.send([1])
            let task = Task(executorPreference: loop) {
                let before = loop.turn
                let token = try loop.register(
                    socket.descriptor, for: .input, handler: recorder)
                _ = loop.schedule(at: 0, recorder, tag: 0)
                Task(executorPreference: loop) { order.send("job") }
                await loop.nextTurn()
                order.send("deferred")
                loop.deregister(socket.descriptor, token: token)
                return loop.turn &- before
            }
            let turns = try await task.value
            #expect(turns == 1)
            // The other job was queued in the first turn and runs in the second, before.
            let value = try await order.next(4)
            #expect(value == ["event", "deadline", "job", "deferred"])
        }
    }

    @Test("off the loop nobody waits for its next turn")
    func deferredElsewhere() async throws {
        try await withLoop { loop in
            let gate = Gate()
            let job = Task(executorPreference: loop) { gate.wait() }
            await loop.nextTurn()
            gate.open()
            _ = await job.value
        }
    }

    @Test("many may wait for the next turn, again and again")
    func deferredMany() async throws {
        try await withLoop { loop in
            await withTaskGroup { group in
                for _ in 0..<20 {
                    group.addTask(executorPreference: loop) {
                        for _ in 0..<50 {
                            await loop.nextTurn()
                        }
                    }
                }
            }
        }
    }

    @Test("stop waits for the thread's end")
    func stop() async throws {
        let loop = try EventLoop(name: "test-loop")
        let (gate, order) = (Gate(), Inbox<String>())
        Task(executorPreference: loop) {
            order.send("begun")
            gate.wait()
            order.send("job")
        }
        let first = try await order.next()
        #expect(first == "begun")
        try BlockingPool(limit: 1).submit {
            order.send("stopping")
            loop.stop()
            order.send("stopped")
        }
        let second = try await order.next()
        #expect(second == "stopping")
        gate.open()
        let others = try await order.next(2)
        #expect(others == ["job", "stopped"])
    }

    @Test("loops come and go, asleep or just begun")
    func startAndStop() async throws {
        for index in 0..<50 {
            try await withLoop { loop in
                if index.isMultiple(of: 2) { try await loop.run {} }
            }
        }
    }

    @Test("a stopped loop is let go, and with it what it kept")
    func release() async throws {
        weak var loop: EventLoop?
        weak var handler: Recorder?
        do {
            let made = try EventLoop(name: "test-loop")
            // It holds the loop in turn.
            let recorder = Recorder(onEvents: { _ in _ = made.turn })
            (loop, handler) = (made, recorder)
            _ = made.schedule(at: .max, recorder, tag: 0)
            let socket = try Descriptor.bound()
            _ = try made.register(socket, for: .input, handler: recorder)
            made.stop()
        }
        #expect(loop == nil)
        #expect(handler == nil)
    }
}
