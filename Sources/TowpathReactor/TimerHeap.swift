/// Names one scheduled deadline. Once it fired or was cancelled, the name means nothing.
package struct TimerID: Equatable, Sendable {
    fileprivate let slot: UInt32
    fileprivate let generation: UInt32
}

/// A binary heap of deadlines, in nanoseconds of the monotonic clock, that can also remove from its
/// middle: a receive with a timeout arms and cancels one for each call that parks.
package struct TimerHeap<Payload> {
    private struct Entry {
        var deadline: UInt64
        var slot: Int
    }

    private struct Slot {
        var payload: Payload?
        var generation: UInt32 = 0
        var position = 0
    }

    private var entries: [Entry] = []
    private var slots: [Slot] = []
    private var free: [Int] = []

    package init() {}

    package var count: Int { entries.count }
    package var next: UInt64? { entries.first?.deadline }

    package mutating func schedule(_ payload: Payload, at deadline: UInt64) -> TimerID {
        let slot: Int
        if let reused = free.popLast() {
            slot = reused
            slots[slot].payload = payload
        } else {
            slot = slots.count
            slots.append(Slot(payload: payload))
        }
        entries.append(Entry(deadline: deadline, slot: slot))
        slots[slot].position = entries.count - 1
        siftUp(entries.count - 1)
        return TimerID(slot: UInt32(slot), generation: slots[slot].generation)
    }

    /// Whether the timer has neither fired nor was cancelled.
    package func contains(_ timer: TimerID) -> Bool {
        let slot = Int(timer.slot)
        return slot < slots.count && slots[slot].generation == timer.generation
            && slots[slot].payload != nil
    }

    /// The payload, or nil if the timer has fired or was cancelled.
    @discardableResult
    package mutating func cancel(_ timer: TimerID) -> Payload? {
        contains(timer) ? remove(at: slots[Int(timer.slot)].position) : nil
    }

    /// The earliest payload whose deadline is not after `now`.
    package mutating func popExpired(now: UInt64) -> Payload? {
        guard let first = entries.first, first.deadline <= now else { return nil }
        return remove(at: 0)
    }

    private mutating func remove(at position: Int) -> Payload? {
        let slot = entries[position].slot
        let last = entries.count - 1
        if position != last {
            entries[position] = entries[last]
            slots[entries[position].slot].position = position
        }
        entries.removeLast()
        if position < entries.count {
            siftDown(position)
            siftUp(position)
        }
        defer { slots[slot].payload = nil }
        slots[slot].generation &+= 1
        free.append(slot)
        return slots[slot].payload
    }

    private mutating func siftUp(_ start: Int) {
        var child = start
        while child > 0 {
            let parent = (child - 1) / 2
            guard entries[child].deadline < entries[parent].deadline else { return }
            swap(child, parent)
            child = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var parent = start
        while true {
            var least = parent
            for child in (2 * parent + 1)...(2 * parent + 2)
            where child < entries.count && entries[child].deadline < entries[least].deadline {
                least = child
            }
            guard least != parent else { return }
            swap(parent, least)
            parent = least
        }
    }

    private mutating func swap(_ left: Int, _ right: Int) {
        entries.swapAt(left, right)
        slots[entries[left].slot].position = left
        slots[entries[right].slot].position = right
    }
}
