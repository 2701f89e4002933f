/// A queue in a growing ring: removal from the front is O(1) and nothing is freed in steady state.
///
/// Public for the reason that `Locked` is.
public struct Ring<Element> {
    @usableFromInline var slots: [Element?] = []
    @usableFromInline var head = 0
    @usableFromInline var size = 0

    /// An empty queue.
    public init() {}

    /// Whether there is no element.
    @inlinable public var isEmpty: Bool { size == 0 }

    /// How many elements there are.
    @inlinable public var count: Int { size }

    /// Adds an element at the end.
    @inlinable public mutating func append(_ element: Element) {
        if size == slots.count { grow() }
        slots[(head &+ size) & (slots.count &- 1)] = element
        size &+= 1
    }

    /// Removes the first element.
    @inlinable public mutating func popFirst() -> Element? {
        guard size > 0 else { return nil }
        let element = slots[head].take()
        head = (head &+ 1) & (slots.count &- 1)
        size &-= 1
        return element
    }

    @usableFromInline mutating func grow() {
        var larger: [Element?] = Array(repeating: nil, count: max(16, slots.count * 2))
        for offset in 0..<size { larger[offset] = slots[(head + offset) & (slots.count - 1)] }
        slots = larger
        head = 0
    }
}
