import TestSupport
import Testing
import TowpathReactor

@Suite("Watchdog", .timeLimit(.minutes(1)))
struct WatchdogTests {
    /// Long enough that a loaded machine does not stall a loop by itself.
    private let threshold = Duration.milliseconds(400)

    @Test("each stall is told once, with its loop and for how long; an idle loop is none")
    func once() async throws {
        try await withLoop { first in
            try await withLoop { second in
                try await withLoop { idle in
                    let stalls = Inbox<Watchdog.Stall>()
                    let watchdog = try Watchdog(loops: [first, idle, second], threshold: threshold)
                    {
                        stalls.send($0)
                    }
                    defer { watchdog.stop() }
                    let (firstGate, secondGate, thirdGate) = (Gate(), Gate(), Gate())

                    Task(executorPreference: first) { firstGate.wait() }
                    let stall = try await stalls.next()
                    #expect(stall.loop == 0)
                    #expect(stall.elapsed >= threshold)

                    // The first is still stalled, and said so.
                    Task(executorPreference: second) { secondGate.wait() }
                    #expect(try await stalls.next().loop == 2)
                    firstGate.open()
                    secondGate.open()
                    try await first.settle()

                    // A second stall of the same loop is told too.
                    Task(executorPreference: first) { thirdGate.wait() }
                    #expect(try await stalls.next().loop == 0)
                    thirdGate.open()
                }
            }
        }
    }

    @Test("a handler that blocks is a stall like a job that does")
    func handler() async throws {
        try await withLoop { loop in
            let (gate, stalls) = (Gate(), Inbox<Watchdog.Stall>())
            let watchdog = try Watchdog(loops: [loop], threshold: threshold) { stalls.send($0) }
            defer { watchdog.stop() }
            let recorder = Recorder(onDeadline: { _ in gate.wait() })
            _ = loop.schedule(at: 0, recorder, tag: 0)
            #expect(try await stalls.next().loop == 0)
            gate.open()
        }
    }

    @Test("a watchdog that was stopped says nothing more")
    func stop() async throws {
        try await withLoop { loop in
            let (gate, stalls) = (Gate(), Inbox<Int>())
            let stopped = try Watchdog(loops: [loop], threshold: threshold) { _ in stalls.send(1) }
            stopped.stop()
            let watchdog = try Watchdog(loops: [loop], threshold: threshold) { _ in stalls.send(2) }
            defer { watchdog.stop() }
            Task(executorPreference: loop) { gate.wait() }
            #expect(try await stalls.next() == 2)
            gate.open()
        }
    }
}
