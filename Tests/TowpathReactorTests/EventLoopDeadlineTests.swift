import TestSupport
import Testing
import TowpathReactor

@Suite("Event loop: deadlines", .timeLimit(.minutes(1)))
struct EventLoopDeadlineTests {
    private func soon(_ milliseconds: Int) -> UInt64 {
        MonotonicClock.deadline(after: .milliseconds(milliseconds))
    }

    @Test("deadlines fire in order, on the loop's thread")
    func order() async throws {
        try await withLoop { loop in
            let places = Inbox<Bool>()
            let recorder = Recorder(onDeadline: { _ in places.send(loop.isCurrent) })
            let (gate, start) = (Gate(), MonotonicClock.now)
            Task(executorPreference: loop) { gate.wait() }
            for tag in [3, 1, 4, 2, 0] as [UInt8] {
                _ = loop.schedule(at: start + UInt64(tag) * 1_000_000, recorder, tag: tag)
            }
            gate.open()
            let tags = try await recorder.tags.next(5)
            #expect(tags == [0, 1, 2, 3, 4])
            let ranOnLoop = try await places.next(5)
            #expect(ranOnLoop == Array(repeating: true, count: 5))
            #expect(loop.timerCount == 0)
        }
    }

    @Test("a deadline is never early, by no nanosecond")
    func neverEarly() async throws {
        try await withLoop { loop in
            let deadlines = (0..<100).map { index in
                MonotonicClock.deadline(after: .microseconds(137 * index))
            }
            let early = Shared(0)
            let recorder = Recorder(onDeadline: { tag in
                if MonotonicClock.now < deadlines[Int(tag)] { early.withLock { $0 += 1 } }
            })
            for (tag, deadline) in deadlines.enumerated() {
                _ = loop.schedule(at: deadline, recorder, tag: UInt8(tag))
            }
            let tags = try await recorder.tags.next(100)
            #expect(tags == Array(0..<100))
            #expect(early.withLock { $0 } == 0)
        }
    }

    @Test("a deadline that has passed fires at once")
    func past() async throws {
        try await withLoop { loop in
            let recorder = Recorder()
            _ = loop.schedule(at: 0, recorder, tag: 1)
            let tags = try await recorder.tags.next()
            #expect(tags == 1)
        }
    }

    @Test("a cancelled deadline does not fire")
    func cancel() async throws {
        try await withLoop { loop in
            let (recorder, gate) = (Recorder(), Gate())
            Task(executorPreference: loop) { gate.wait() }
            let timer = loop.schedule(at: soon(1), recorder, tag: 1)
            _ = loop.schedule(at: soon(2), recorder, tag: 2)
            loop.cancel(timer)
            gate.open()
            let more = try await recorder.tags.next()
            #expect(more == 2)
            #expect(loop.timerCount == 0)
        }
    }

    @Test("cancelling what has fired touches no other deadline")
    func cancelLate() async throws {
        try await withLoop { loop in
            let recorder = Recorder()
            let timer = loop.schedule(at: 0, recorder, tag: 1)
            let tags = try await recorder.tags.next()
            #expect(tags == 1)
            _ = loop.schedule(at: soon(5), recorder, tag: 2)
            loop.cancel(timer)
            let more = try await recorder.tags.next()
            #expect(more == 2)
        }
    }

    @Test("the handler of a cancelled or fired deadline is let go")
    func release() async throws {
        try await withLoop { loop in
            weak var cancelled: Recorder?
            do {
                let recorder = Recorder()
                cancelled = recorder
                loop.cancel(loop.schedule(at: .max, recorder, tag: 0))
            }
            #expect(cancelled == nil)
            weak var fired: Recorder?
            do {
                let recorder = Recorder()
                fired = recorder
                _ = loop.schedule(at: 0, recorder, tag: 0)
                let tags = try await recorder.tags.next()
                #expect(tags == 0)
            }
            try await loop.settle()
            #expect(fired == nil)
        }
    }

    @Test("a loop that sleeps towards a far deadline is woken for a nearer one")
    func nearer() async throws {
        try await withLoop { loop in
            let recorder = Recorder()
            _ = loop.schedule(at: MonotonicClock.deadline(after: .seconds(3_600)), recorder, tag: 9)
            try await loop.settle()
            for tag in 0..<100 as Range<UInt8> {
                _ = loop.schedule(at: MonotonicClock.now, recorder, tag: tag)
                let tags = try await recorder.tags.next()
                #expect(tags == tag)
            }
            #expect(loop.timerCount == 1)
        }
    }

    @Test("a deadline at the end of time keeps nobody awake")
    func never() async throws {
        try await withLoop { loop in
            let recorder = Recorder()
            let timer = loop.schedule(at: .max, recorder, tag: 1)
            let turns = try await loop.turns(during: .milliseconds(20))
            #expect(turns < 10)
            #expect(loop.timerCount == 1)
            loop.cancel(timer)
            #expect(loop.timerCount == 0)
        }
    }

    @Test("waiting for a fraction of a millisecond is no busy loop")
    func fraction() async throws {
        try await withLoop { loop in
            let turns = try await loop.turns(during: .microseconds(900))
            #expect(turns < 10)
        }
    }

    @Test("a deadline may schedule the next")
    func chain() async throws {
        try await withLoop { loop in
            let box = Shared<Recorder?>(nil)
            let recorder = Recorder(onDeadline: { tag in
                guard tag < 100, let recorder = box.withLock({ $0 }) else { return }
                _ = loop.schedule(at: MonotonicClock.now + 1_000, recorder, tag: tag + 1)
            })
            box.withLock { $0 = recorder }
            _ = loop.schedule(at: 0, recorder, tag: 0)
            let tags = try await recorder.tags.next(101)
            #expect(tags == Array(0...100))
            box.withLock { $0 = nil }
        }
    }

    @Test("deadlines set and cancelled by several tasks at once leave the heap empty")
    func concurrent() async throws {
        try await withLoop { loop in
            let recorder = Recorder()
            await withTaskGroup { group in
                for task in 0..<8 {
                    group.addTask {
                        for index in 0..<500 {
                            let deadline = MonotonicClock.now + UInt64(task * index)
                            loop.cancel(loop.schedule(at: deadline, recorder, tag: 0))
                        }
                    }
                }
            }
            #expect(loop.timerCount == 0)
        }
    }
}
