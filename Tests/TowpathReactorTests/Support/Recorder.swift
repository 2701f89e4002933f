import TestSupport
import TowpathReactor

/// A handler that tells the test what it heard, after it did what the test asked for.
final class Recorder: EventHandler {
    let events = Inbox<ReadyEvents>()
    let tags = Inbox<UInt8>()
    private let onEvents: @Sendable (ReadyEvents) -> Void
    private let onDeadline: @Sendable (UInt8) -> Void

    init(
        onEvents: @escaping @Sendable (ReadyEvents) -> Void = { _ in },
        onDeadline: @escaping @Sendable (UInt8) -> Void = { _ in }
    ) {
        self.onEvents = onEvents
        self.onDeadline = onDeadline
    }

    func handle(_ ready: ReadyEvents) {
        onEvents(ready)
        events.send(ready)
    }

    func deadlineReached(_ tag: UInt8) {
        onDeadline(tag)
        tags.send(tag)
    }
}
