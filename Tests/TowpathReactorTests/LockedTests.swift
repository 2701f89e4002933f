import TestSupport
import Testing
import TowpathReactor

@Suite("Locked", .timeLimit(.minutes(1)))
struct LockedTests {
    private struct Failure: Error, Equatable {}

    @Test("eight tasks that count together lose nothing")
    func hammer() async throws {
        let counter = Shared(0)
        await withTaskGroup { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<10_000 { counter.withLock { $0 += 1 } }
                }
            }
        }
        #expect(counter.withLock { $0 } == 80_000)
    }

    @Test("two fields are never seen apart")
    func pair() async throws {
        let fields = Shared((0, 0))
        await withTaskGroup { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<1_000 {
                        let (left, right) = fields.withLock { fields in
                            fields.0 += 1
                            fields.1 += 1
                            return fields
                        }
                        #expect(left == right)
                    }
                }
            }
        }
    }

    @Test("an error leaves the lock open and what was written in place")
    func failure() {
        let value = Locked(1)
        #expect(throws: Failure()) {
            try value.withLock { value throws(Failure) in
                value = 2
                throw Failure()
            }
        }
        #expect(value.withLock { $0 } == 2)
    }

    @Test("the value is let go with the lock")
    func release() {
        final class Value: Sendable {}
        weak var value: Value?
        do {
            let made = Value()
            value = made
            let locked = Locked(made)
            #expect(locked.withLock { $0 === made })
        }
        #expect(value == nil)
    }

    @Test("a value that cannot be copied can be kept and taken out")
    func noncopyable() throws {
        let (near, far) = try Descriptor.pair(.stream)
        let peer = Descriptor(owning: far)
        let locked = Locked<Descriptor?>(Descriptor(owning: near))
        #expect(locked.withLock { $0?.number } == near)
        _ = locked.withLock { $0.take() }
        #expect(peer.receive() == .end)
    }
}
