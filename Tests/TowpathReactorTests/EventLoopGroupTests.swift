import Testing
import TowpathReactor

@Suite("Event loop group", .timeLimit(.minutes(1)))
struct EventLoopGroupTests {
    private func withGroup(
        count: Int, _ body: (EventLoopGroup, [EventLoop]) async throws -> Void
    ) async throws {
        let group = EventLoopGroup(count: count)
        let loops = try group.all()
        defer { for loop in loops { loop.stop() } }
        try await body(group, loops)
    }

    @Test("a group makes its loops once", arguments: [1, 3])
    func all(count: Int) async throws {
        try await withGroup(count: count) { group, loops in
            #expect(group.count == count)
            #expect(loops.count == count)
            #expect(Set(loops.map(ObjectIdentifier.init)).count == count)
            let again = try group.all()
            #expect(again.map(ObjectIdentifier.init) == loops.map(ObjectIdentifier.init))
        }
    }

    @Test("the loops are given in turn")
    func next() async throws {
        try await withGroup(count: 3) { group, loops in
            let given = try (0..<6).map { _ in try group.next() }
            for (index, loop) in given.enumerated() { #expect(loop === loops[index % 3]) }
        }
    }

    @Test("who runs on a loop of the group is given that one, others the loops in turn")
    func nearest() async throws {
        try await withGroup(count: 3) { group, loops in
            for loop in loops {
                let own = try await loop.run {
                    try (0..<4).map { _ in try group.nearest() === loop }
                }
                #expect(own == [true, true, true, true])
            }
            let given = try (0..<3).map { _ in ObjectIdentifier(try group.nearest()) }
            #expect(Set(given).count == 3)
        }
    }

    @Test("a loop of another group is not the nearest")
    func foreign() async throws {
        try await withGroup(count: 1) { group, loops in
            try await withLoop { other in
                let isOther = try await other.run { try group.nearest() === other }
                #expect(!isOther)
            }
        }
    }

    @Test("several threads that ask first are given the same loops")
    func concurrently() async throws {
        let group = EventLoopGroup(count: 2)
        let answers = try await withThrowingTaskGroup { tasks in
            for _ in 0..<8 {
                tasks.addTask { try group.all().map(ObjectIdentifier.init) }
            }
            return try await tasks.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(answers.count == 1)
        for loop in try group.all() { loop.stop() }
    }

    @Test("the shared group has as many loops as the process may use processors, named in order")
    func shared() async throws {
        let loops = try EventLoopGroup.shared.all()
        #expect(loops.count == ProcessorCount.usable)
        let name = try await loops[0].run { ThreadState.name }
        #expect(name == "towpath-loop-0")
    }
}
