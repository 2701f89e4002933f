/// Names one registration: a slot and the slot's generation, so that an event fetched for an
/// earlier owner of the slot reaches nobody (BR-005).
package struct Token: Equatable, Sendable {
    let rawValue: UInt64

    package init(slot: Int, generation: UInt32) {
        rawValue = UInt64(generation) << 32 | UInt64(UInt32(slot))
    }

    init(rawValue: UInt64) { self.rawValue = rawValue }

    var slot: Int { Int(UInt32(truncatingIfNeeded: rawValue)) }
    var generation: UInt32 { UInt32(rawValue >> 32) }
}

/// Who hears of events, by token.
package struct Registry<Handler> {
    private struct Slot {
        var handler: Handler?
        /// Starts at 1: the token 0 is the loop's own wake-up.
        var generation: UInt32 = 1
    }

    private var slots: [Slot] = []
    private var free: [Int] = []

    package init() {}

    package var count: Int { slots.count - free.count }

    package mutating func insert(_ handler: Handler) -> Token {
        let slot: Int
        if let reused = free.popLast() {
            slot = reused
            slots[slot].handler = handler
        } else {
            slot = slots.count
            slots.append(Slot(handler: handler))
        }
        return Token(slot: slot, generation: slots[slot].generation)
    }

    /// The handler, which the caller lets go of after it has released the registry's lock.
    package mutating func remove(_ token: Token) -> Handler? {
        guard let handler = self[token] else { return nil }
        slots[token.slot].handler = nil
        slots[token.slot].generation = max(1, token.generation &+ 1)
        free.append(token.slot)
        return handler
    }

    package subscript(token: Token) -> Handler? {
        guard token.slot < slots.count, slots[token.slot].generation == token.generation else {
            return nil
        }
        return slots[token.slot].handler
    }
}
