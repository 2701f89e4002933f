import TestSupport
import Testing
import TowpathReactor

@Suite("Blocking pool", .timeLimit(.minutes(1)))
struct BlockingPoolTests {
    @Test("work runs on a thread of the pool and its result comes back")
    func run() async throws {
        let pool = BlockingPool(limit: 2)
        let thread = try await pool.run { ThreadState.number }
        #expect(thread > 0)
    }

    @Test("as many works run at once as the bound allows, and no more", arguments: [1, 3])
    func bound(limit: Int) async throws {
        let pool = BlockingPool(limit: limit)
        let (gate, begun) = (Gate(), Inbox<Int>())
        let running = Shared((now: 0, most: 0))
        for number in 0..<20 {
            try pool.submit {
                running.withLock { running in
                    running.now += 1
                    running.most = max(running.most, running.now)
                }
                begun.send(number)
                gate.wait()
                running.withLock { $0.now -= 1 }
            }
        }
        #expect(try await begun.next(limit).count == limit)
        #expect(running.withLock { $0.most } == limit)
        gate.open()
        #expect(try await begun.next(20 - limit).count == 20 - limit)
        #expect(running.withLock { $0.most } == limit)
    }

    @Test("work that waits for a thread begins in the order it came")
    func order() async throws {
        let pool = BlockingPool(limit: 1)
        let (gate, begun) = (Gate(), Inbox<Int>())
        try pool.submit { gate.wait() }
        for number in 0..<200 { try pool.submit { begun.send(number) } }
        gate.open()
        #expect(try await begun.next(200) == Array(0..<200))
    }

    @Test("every work of many callers runs once")
    func many() async throws {
        let pool = BlockingPool(limit: 4)
        let done = Inbox<Int>()
        try await withThrowingTaskGroup { group in
            for task in 0..<8 {
                group.addTask {
                    for index in 0..<500 {
                        try pool.submit { done.send(task * 500 + index) }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await done.next(4_000).sorted() == Array(0..<4_000))
    }

    @Test("a work may submit another")
    func nested() async throws {
        let pool = BlockingPool(limit: 1)
        let done = Inbox<Int>()
        try pool.submit {
            try? pool.submit { done.send(2) }
            done.send(1)
        }
        #expect(try await done.next(2) == [1, 2])
    }

    @Test("a pool in use never has more threads than its bound")
    func threads() async throws {
        let pool = BlockingPool(limit: 2)
        var threads: Set<Int32> = []
        for _ in 0..<200 { threads.insert(try await pool.run { ThreadState.number }) }
        #expect(threads.count <= 2)
    }

    @Test("a pool that is never without work lets go of what it has done")
    func release() async throws {
        final class Work: Sendable {}
        let pool = BlockingPool(limit: 1)
        let (begun, first, second) = (Inbox<Int>(), Gate(), Gate())
        weak var done: Work?
        do {
            let work = Work()
            done = work
            try pool.submit { first.wait() }
            try pool.submit { withExtendedLifetime(work) {} }
        }
        try pool.submit {
            begun.send(2)
            second.wait()
        }
        try pool.submit { begun.send(3) }
        first.open()
        #expect(try await begun.next() == 2)
        // The second work runs and the third waits: the queue has not been empty since the first.
        #expect(done == nil)
        second.open()
        #expect(try await begun.next() == 3)
    }
}
