/// A queue in a growing ring: removal from the front is O(1) and nothing is freed in steady state.
package struct Ring<Element> {
    private var slots: [Element?] = []
    private var head = 0
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }

    package mutating func append(_ element: Element) {
        if count == slots.count { grow() }
        slots[(head &+ count) & (slots.count &- 1)] = element
        count &+= 1
    }

    package mutating func popFirst() -> Element? {
        guard count > 0 else { return nil }
        let element = slots[head].take()
        head = (head &+ 1) & (slots.count &- 1)
        count &-= 1
        return element
    }

    private mutating func grow() {
        var larger: [Element?] = Array(repeating: nil, count: max(16, slots.count * 2))
        for offset in 0..<count { larger[offset] = slots[(head + offset) & (slots.count - 1)] }
        slots = larger
        head = 0
    }
}
