import TestSupport
import Testing
import TowpathReactor

@Suite("Ring")
struct RingTests {
    var ring = Ring<Int>()

    @Test("an empty ring gives nothing")
    mutating func empty() {
        #expect(ring.isEmpty)
        #expect(ring.popFirst() == nil)
        #expect(ring.count == 0)
    }

    @Test("what went in first comes out first", arguments: [1, 15, 16, 17, 1_000])
    mutating func order(count: Int) {
        for element in 0..<count { ring.append(element) }
        #expect(ring.count == count)
        for element in 0..<count { #expect(ring.popFirst() == element) }
        #expect(ring.isEmpty)
        #expect(ring.popFirst() == nil)
    }

    @Test("a ring that is full across its seam grows in order", arguments: 0..<16)
    mutating func seam(offset: Int) {
        for element in 0..<offset { ring.append(element) }
        for _ in 0..<offset { _ = ring.popFirst() }
        for element in 0..<40 { ring.append(element) }
        #expect((0..<40).map { _ in ring.popFirst() } == Array(0..<40))
    }

    @Test("a ring in use agrees with an array")
    mutating func model() {
        var array: [Int] = []
        var random = SplitMix64(seed: 2)
        for element in 0..<10_000 {
            if Int.random(in: 0..<5, using: &random) < 2, !array.isEmpty {
                #expect(ring.popFirst() == array.removeFirst())
            } else if array.count < 100 {
                ring.append(element)
                array.append(element)
            }
            #expect(ring.count == array.count)
        }
    }

    @Test("an element is let go once it was taken")
    func release() {
        final class Element {}
        var ring = Ring<Element>()
        weak var element: Element?
        do {
            let made = Element()
            element = made
            ring.append(made)
        }
        #expect(element != nil)
        _ = ring.popFirst()
        #expect(element == nil)
    }
}
