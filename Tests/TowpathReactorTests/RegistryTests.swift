import Testing
import TowpathReactor

@Suite("Registry")
struct RegistryTests {
    var registry = Registry<String>()

    @Test("a token leads to its handler")
    mutating func lookUp() {
        let first = registry.insert("a")
        let second = registry.insert("b")
        #expect(registry[first] == "a")
        #expect(registry[second] == "b")
        #expect(registry.count == 2)
    }

    @Test("a removed handler comes back once")
    mutating func remove() {
        let token = registry.insert("a")
        #expect(registry.remove(token) == "a")
        #expect(registry.remove(token) == nil)
        #expect(registry[token] == nil)
        #expect(registry.count == 0)
    }

    @Test("BR-005: the token of an earlier owner does not reach the slot's next one")
    mutating func generation() {
        let earlier = registry.insert("earlier")
        _ = registry.remove(earlier)
        let later = registry.insert("later")
        #expect(earlier == Token(slot: 0, generation: 1))
        #expect(later == Token(slot: 0, generation: 2))
        #expect(registry[earlier] == nil)
        #expect(registry.remove(earlier) == nil)
        #expect(registry[later] == "later")
    }

    @Test("no token has the generation 0: that number is the loop's own wake-up")
    mutating func wakeUp() {
        #expect(registry[Token(slot: 0, generation: 0)] == nil)
        _ = registry.insert("a")
        #expect(registry[Token(slot: 0, generation: 0)] == nil)
    }

    @Test("a token beyond the slots leads nowhere")
    mutating func beyond() {
        _ = registry.insert("a")
        #expect(registry[Token(slot: 1, generation: 1)] == nil)
        #expect(registry[Token(slot: Int(UInt32.max), generation: .max)] == nil)
    }

    @Test("slots are used again: what comes and goes does not grow")
    mutating func reuse() {
        for _ in 0..<1_000 { _ = registry.remove(registry.insert("a")) }
        let tokens = (0..<3).map { _ in registry.insert("b") }
        #expect(
            tokens == [
                Token(slot: 0, generation: 1_001), Token(slot: 1, generation: 1),
                Token(slot: 2, generation: 1),
            ])
        #expect(registry.count == 3)
    }
}
