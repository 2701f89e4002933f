import TestSupport
import Testing
import TowpathReactor

@Suite("Timer heap")
struct TimerHeapTests {
    var heap = TimerHeap<Int>()

    private mutating func popAll(now: UInt64 = .max) -> [Int] {
        var payloads: [Int] = []
        while let payload = heap.popExpired(now: now) { payloads.append(payload) }
        return payloads
    }

    @Test("it contains a timer until that has fired or was cancelled")
    func contains() {
        var heap = TimerHeap<Int>()
        let (first, second) = (heap.schedule(1, at: 1), heap.schedule(2, at: 2))
        #expect(heap.contains(first) && heap.contains(second))
        #expect(heap.popExpired(now: 1) == 1)
        #expect(!heap.contains(first) && heap.contains(second))
        // The slot's next timer is another one.
        let third = heap.schedule(3, at: 3)
        #expect(!heap.contains(first) && heap.contains(third))
        heap.cancel(second)
        #expect(!heap.contains(second) && heap.contains(third))
    }

    @Test("an empty heap has no next deadline and gives nothing")
    mutating func empty() {
        #expect(heap.next == nil)
        #expect(heap.count == 0)
        #expect(heap.popExpired(now: .max) == nil)
    }

    @Test("deadlines come out in order, whatever the order they went in", arguments: [7, 101, 500])
    mutating func order(factor: Int) {
        for index in 0..<1_009 {
            let deadline = index * factor % 1_009
            _ = heap.schedule(deadline, at: UInt64(deadline))
        }
        #expect(heap.next == 0)
        #expect(popAll() == Array(0..<1_009))
    }

    @Test("a deadline expires at its nanosecond, not one before")
    mutating func boundary() {
        _ = heap.schedule(1, at: 100)
        #expect(heap.popExpired(now: 99) == nil)
        #expect(heap.popExpired(now: 100) == 1)
        #expect(heap.popExpired(now: .max) == nil)
    }

    @Test("only what has passed is given")
    mutating func partly() {
        for deadline in [30, 10, 20] { _ = heap.schedule(deadline, at: UInt64(deadline)) }
        #expect(popAll(now: 20) == [10, 20])
        #expect(heap.next == 30)
    }

    @Test("the extremes of the clock are deadlines like others")
    mutating func extremes() {
        _ = heap.schedule(2, at: .max)
        _ = heap.schedule(1, at: 0)
        #expect(heap.popExpired(now: 0) == 1)
        #expect(heap.popExpired(now: .max - 1) == nil)
        #expect(heap.popExpired(now: .max) == 2)
    }

    @Test("deadlines of the same nanosecond all expire")
    mutating func equal() {
        for payload in 0..<20 { _ = heap.schedule(payload, at: 5) }
        #expect(popAll(now: 5).sorted() == Array(0..<20))
    }

    @Test("a cancelled deadline gives its payload back, once, and does not expire")
    mutating func cancel() {
        let timer = heap.schedule(1, at: 1)
        #expect(heap.cancel(timer) == 1)
        #expect(heap.cancel(timer) == nil)
        #expect(heap.count == 0)
        #expect(popAll() == [])
    }

    @Test("the name of a fired deadline means nothing, though its slot has a new owner")
    mutating func stale() {
        let first = heap.schedule(1, at: 1)
        #expect(heap.popExpired(now: 1) == 1)
        let second = heap.schedule(2, at: 2)
        #expect(first != second)
        #expect(heap.cancel(first) == nil)
        #expect(heap.count == 1)
        #expect(heap.cancel(second) == 2)
    }

    @Test("a name from another heap beyond this one's slots is ignored")
    mutating func foreign() {
        var other = TimerHeap<Int>()
        _ = other.schedule(0, at: 0)
        let timer = other.schedule(0, at: 0)
        _ = heap.schedule(1, at: 1)
        #expect(heap.cancel(timer) == nil)
        #expect(heap.count == 1)
    }

    @Test("removal from the middle keeps the order", arguments: [2, 3, 5, 7])
    mutating func middle(step: Int) {
        var timers: [(deadline: Int, timer: TimerID)] = []
        for index in 0..<1_009 {
            let deadline = index * 389 % 1_009
            timers.append((deadline, heap.schedule(deadline, at: UInt64(deadline))))
        }
        var left: [Int] = []
        for (index, entry) in timers.enumerated() {
            if index.isMultiple(of: step) {
                #expect(heap.cancel(entry.timer) == entry.deadline)
            } else {
                left.append(entry.deadline)
            }
        }
        #expect(heap.count == left.count)
        #expect(popAll() == left.sorted())
    }

    @Test("a heap in use agrees with a sorted list")
    mutating func model() {
        var list: [(deadline: UInt64, payload: Int, timer: TimerID)] = []
        var random = SplitMix64(seed: 1)
        for payload in 0..<5_000 {
            switch Int.random(in: 0..<4, using: &random) {
            case 0 where !list.isEmpty:
                let victim = list.remove(at: Int.random(in: 0..<list.count, using: &random))
                #expect(heap.cancel(victim.timer) == victim.payload)
            case 1:
                let now = UInt64.random(in: 0..<1_000, using: &random)
                let expected = list.filter { $0.deadline <= now }.map(\.payload).sorted()
                list.removeAll { $0.deadline <= now }
                #expect(popAll(now: now).sorted() == expected)
            default:
                let deadline = UInt64.random(in: 0..<1_000, using: &random)
                list.append((deadline, payload, heap.schedule(payload, at: deadline)))
            }
            #expect(heap.count == list.count)
            #expect(heap.next == list.map(\.deadline).min())
        }
    }

    @Test("a payload is let go when it has fired or was cancelled")
    func release() {
        final class Payload {}
        var heap = TimerHeap<Payload>()
        weak var fired: Payload?
        weak var cancelled: Payload?
        do {
            let first = Payload()
            let second = Payload()
            (fired, cancelled) = (first, second)
            _ = heap.schedule(first, at: 1)
            let timer = heap.schedule(second, at: 2)
            _ = heap.popExpired(now: 1)
            heap.cancel(timer)
        }
        #expect(fired == nil)
        #expect(cancelled == nil)
        #expect(heap.count == 0)
    }
}
