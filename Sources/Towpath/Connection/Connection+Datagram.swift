internal import TowpathReactor

/// Datagrams in and out. One receive at a time; sends go out whole, in the order of the calls.
///
/// Errors pass: a datagram that could not be sent or was refused by the peer's host throws once, and
/// the connection stays usable (RFC 1122 §4.1.3.3).
extension Connection where Top: DatagramProtocol {
    /// The largest payload, in bytes, that the path takes without fragments, by what the kernel knows
    /// now. It can shrink and grow. For Unix datagrams: what the socket takes.
    ///
    /// Throws ``NetworkError/Code/closed`` before the connection is ready and after it ended.
    public var maximumDatagramSize: Int {
        get throws(NetworkError) {
            try liveCore().maximumDatagramSize()
        }
    }

    /// Waits for the next datagram.
    ///
    /// Nil once no more will come: after the listener's ``UDP/idleTimeout(_:)``. Throws
    /// ``NetworkError/Code/connectionRefused`` once if an earlier datagram was refused; the connection
    /// goes on.
    public func receive(timeout: Duration? = nil) async throws -> Datagram? {
        let core = try liveCore()
        return try await core.receive(timeout) { core.takeDatagram(&$0) }
    }

    /// The datagrams as they come. An error ends the iteration, not the connection: iterating again
    /// goes on.
    public var messages: Datagrams { Datagrams(self, untilDrain: false) }

    /// The datagrams as they come, until the listener that accepted the connection drains and none is
    /// waiting.
    public var messagesUntilDrain: Datagrams { Datagrams(self, untilDrain: true) }

    /// Sends one datagram, possibly an empty one; returns when the kernel has taken it.
    ///
    /// Throws ``NetworkError/Code/messageTooLong`` if it is larger than the socket, or, with
    /// ``UDP/Fragmentation/prohibited``, the path can take.
    public func send(_ bytes: [UInt8], timeout: Duration? = nil) async throws {
        let core = try liveCore()
        var holdsRight = false
        if try bytes.withUnsafeBytes({ try core.sendDatagramAtOnce($0, &holdsRight) }) { return }
        try await core.sendDatagram(bytes.span.bytes, holdsRight: holdsRight, timeout: timeout)
    }

    /// Sends one datagram from memory that the caller keeps.
    public func send(_ bytes: borrowing RawSpan, timeout: Duration? = nil) async throws {
        try await liveCore().sendDatagram(bytes, timeout: timeout)
    }

    /// Sends one datagram with the bytes of any sequence, such as a string's `utf8`.
    public func send(_ bytes: some Sequence<UInt8>, timeout: Duration? = nil) async throws {
        try await send(Array(bytes), timeout: timeout)
    }

    /// Sends several datagrams in order, with as few system calls as the kernel allows: those of one
    /// size are cut from one send (UDP_SEGMENT), others go together (sendmmsg).
    ///
    /// If the caller stops waiting, or one fails, those before it are sent and those after it are not.
    public func send(contentsOf datagrams: [[UInt8]], timeout: Duration? = nil) async throws {
        try await liveCore().sendDatagrams(datagrams, timeout: timeout)
    }

    /// How many datagrams were dropped since the connection began, because nobody received them in
    /// time: more than ``UDP/queueLimit(_:)`` were waiting. Counted on a listener's connections; for
    /// others the kernel drops unseen.
    public var droppedDatagramCount: Int {
        if case .live(let core) = core { core.droppedDatagramCount } else { 0 }
    }
}
