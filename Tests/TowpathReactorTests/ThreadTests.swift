import CTowpathLinux
import TestSupport
import Testing
import TowpathReactor

@Suite("Threads", .timeLimit(.minutes(1)))
struct ThreadTests {
    private static let signals = [
        SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGALRM, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD, SIGWINCH,
        SIGIO, SIGPROF, 64,
    ]

    @Test("BR-008: a loop's thread blocks every signal")
    func loopSignals() async throws {
        try await withLoop { loop in
            let unblocked = try await loop.run {
                Self.signals.filter { !ThreadState.blocks($0) }
            }
            #expect(unblocked == [])
        }
    }

    @Test("BR-008: the threads of the pool block every signal")
    func poolSignals() async throws {
        let unblocked = try await BlockingPool(limit: 1).run {
            Self.signals.filter { !ThreadState.blocks($0) }
        }
        #expect(unblocked == [])
    }

    @Test("a loop's thread has the loop's name")
    func loopName() async throws {
        try await withLoop(name: "towpath-loop-77") { loop in
            let name = try await loop.run { ThreadState.name }
            #expect(name == "towpath-loop-77")
        }
    }

    @Test("a name that is too long for the kernel is cut, not lost")
    func longName() async throws {
        try await withLoop(name: "towpath-loop-1234") { loop in
            let name = try await loop.run { ThreadState.name }
            #expect(name == "towpath-loop-12")
        }
    }

    @Test("the threads of the pool have a name")
    func poolName() async throws {
        let name = try await BlockingPool(limit: 1).run { ThreadState.name }
        #expect(name.hasPrefix("towpath-"))
    }

    @Test("the watchdog's thread has a name")
    func watchdogName() async throws {
        let names = Inbox<String>()
        try await withLoop { loop in
            let watchdog = try Watchdog(loops: [loop], threshold: .milliseconds(1)) { _ in
                names.send(ThreadState.name)
            }
            let gate = Gate()
            let job = Task(executorPreference: loop) { gate.wait() }
            let name = try await names.next()
            gate.open()
            _ = await job.value
            watchdog.stop()
            #expect(name.hasPrefix("towpath-"))
        }
    }
}
