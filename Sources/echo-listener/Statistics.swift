import Synchronization

/// What the handlers count, from any thread.
final class Statistics: Sendable {
    private let opened = Atomic(0)
    private let closed = Atomic(0)
    private let received = Atomic(0)
    private let sent = Atomic(0)

    struct Snapshot {
        let opened, closed, received, sent: Int

        /// One line; rates are since `earlier`, which was `seconds` ago.
        func line(since earlier: Snapshot, seconds: Int) -> String {
            let seconds = max(seconds, 1)
            return "connections \(opened - closed) now, \(opened) in all;"
                + " received \(received) B, sent \(sent) B;"
                + " \((opened - earlier.opened) / seconds) connections/s,"
                + " \((received - earlier.received) / seconds) B/s in,"
                + " \((sent - earlier.sent) / seconds) B/s out"
        }
    }

    func connectionOpened() { opened.add(1, ordering: .relaxed) }
    func connectionClosed() { closed.add(1, ordering: .relaxed) }
    func didReceive(_ byteCount: Int) { received.add(byteCount, ordering: .relaxed) }
    func didSend(_ byteCount: Int) { sent.add(byteCount, ordering: .relaxed) }

    var snapshot: Snapshot {
        Snapshot(
            opened: opened.load(ordering: .relaxed), closed: closed.load(ordering: .relaxed),
            received: received.load(ordering: .relaxed), sent: sent.load(ordering: .relaxed))
    }
}
