internal import TowpathReactor

/// Bytes in and out. One receive at a time: a second one throws
/// ``NetworkError/Code/receiveInProgress``. Sends from several tasks go out whole, in the order of the
/// calls.
extension Connection where Top: StreamProtocol {
    // MARK: Receiving

    /// Waits for bytes and returns at most `maximum` of them, at least one; nil at the end of the
    /// stream, every time from then on.
    ///
    /// Throws ``NetworkError/Code/connectionReset`` or TCP's own timeout once what came before it has
    /// been received, ``NetworkError/Code/timedOut`` after `timeout`, and
    /// ``NetworkError/Code/closed`` after ``close()``.
    public func receive(atMost maximum: Int = 65_536, timeout: Duration? = nil) async throws
        -> [UInt8]?
    {
        let core = try liveCore()
        return try await core.receive(timeout) { core.take(&$0, atMost: maximum) }
    }

    /// Waits for at least `minimum` bytes and returns at most `maximum`; fewer than `minimum` only at
    /// the end of the stream, and nil once nothing is left.
    public func receive(
        atLeast minimum: Int, atMost maximum: Int, timeout: Duration? = nil
    ) async throws -> [UInt8]? {
        let core = try liveCore()
        return try await core.receive(timeout) {
            core.take(&$0, atLeast: min(minimum, maximum), atMost: maximum)
        }
    }

    /// Waits for exactly `count` bytes.
    ///
    /// Throws ``NetworkError/Code/endOfStream`` if the stream ends before; the bytes that came stay and
    /// can be received.
    public func receive(exactly count: Int, timeout: Duration? = nil) async throws -> [UInt8] {
        let core = try liveCore()
        return try await core.receive(timeout) { core.take(&$0, exactly: count) }
    }

    /// Waits for a delimiter and returns everything up to and including it.
    ///
    /// Throws ``NetworkError/Code/limitExceeded`` if the first `limit` bytes do not contain the whole
    /// delimiter, and ``NetworkError/Code/endOfStream`` if the stream ends before it; the bytes that
    /// came stay and can be received. An empty delimiter is found at once.
    public func receive(
        until delimiter: some Sequence<UInt8>, limit: Int, timeout: Duration? = nil
    ) async throws -> [UInt8] {
        let core = try liveCore()
        let delimiter = Array(delimiter)
        if delimiter.isEmpty { return [] }
        var searched = 0
        return try await core.receive(timeout) {
            core.take(&$0, until: delimiter, limit: limit, searched: &searched)
        }
    }

    /// Waits for bytes and writes them to the span, without allocating. Returns how many; nil at the
    /// end of the stream.
    public func receive(into span: inout MutableRawSpan, timeout: Duration? = nil) async throws
        -> Int?
    {
        let core = try liveCore()
        return try await core.receive(timeout) { state in
            span.withUnsafeMutableBytes { core.take(&state, into: $0) }
        }
    }

    /// The stream as a sequence of chunks of up to 64 KiB, as they come.
    public var chunks: ByteChunks {
        ByteChunks(self, atMost: 65_536, idleTimeout: nil, untilDrain: false)
    }

    /// The stream as a sequence of chunks, as they come.
    ///
    /// - Parameters:
    ///   - maximum: The largest chunk, in bytes.
    ///   - idleTimeout: After how long without a byte the sequence throws
    ///     ``NetworkError/Code/timedOut``; nil for never.
    ///   - untilDrain: Whether the sequence also ends once the listener that accepted the connection
    ///     drains and no byte is waiting, so that idle connections do not hold up a drain.
    public func chunks(
        atMost maximum: Int = 65_536, idleTimeout: Duration? = nil, untilDrain: Bool = false
    ) -> ByteChunks {
        ByteChunks(self, atMost: maximum, idleTimeout: idleTimeout, untilDrain: untilDrain)
    }

    // MARK: Sending

    /// Sends bytes; returns when the kernel has taken all of them.
    ///
    /// If the caller stops waiting in the middle, by cancellation or `timeout`, the rest is kept and
    /// sent before any other send, so that the peer sees whole messages. Throws
    /// ``NetworkError/Code/connectionReset`` if the peer is gone, and
    /// ``NetworkError/Code/outputFinished`` after ``finish(timeout:)``.
    public func send(_ bytes: [UInt8], timeout: Duration? = nil) async throws {
        let core = try liveCore()
        var sent = 0
        if try bytes.withUnsafeBytes({ try core.sendAtOnce($0, &sent) }) { return }
        try await core.send(bytes[...], sent: sent, timeout: timeout)
    }

    /// Sends a part of an array, without copying it out.
    public func send(_ bytes: ArraySlice<UInt8>, timeout: Duration? = nil) async throws {
        let core = try liveCore()
        var sent = 0
        if try bytes.withUnsafeBytes({ try core.sendAtOnce($0, &sent) }) { return }
        try await core.send(bytes, sent: sent, timeout: timeout)
    }

    /// Sends bytes from memory that the caller keeps.
    public func send(_ bytes: borrowing RawSpan, timeout: Duration? = nil) async throws {
        let core = try liveCore()
        var sent = 0
        if try bytes.withUnsafeBytes({ try core.sendAtOnce($0, &sent) }) { return }
        try await core.send(
            count: bytes.byteCount, sent: sent, timeout: timeout,
            write: { core, state, offset in
                bytes.withUnsafeBytes { core.put(&state, .init(rebasing: $0[offset...])) }
            }, rest: { offset in bytes.withUnsafeBytes { Array($0[offset...])[...] } })
    }

    /// Sends the bytes of any sequence, such as a string's `utf8`.
    public func send(_ bytes: some Sequence<UInt8>, timeout: Duration? = nil) async throws {
        try await send(Array(bytes), timeout: timeout)
    }

    /// Sends several pieces as one: in one system call where the kernel takes it.
    public func send(contentsOf pieces: [[UInt8]], timeout: Duration? = nil) async throws {
        let core = try liveCore()
        try await core.send(
            count: pieces.reduce(0) { $0 + $1.count }, timeout: timeout,
            write: { core, state, offset in
                core.put(&state, gathering: pieces, from: offset)
            },
            rest: { Array(pieces.joined())[$0...] })
    }

    /// Ends the sending side: what was accepted goes out, then a FIN, and the peer reads an end of the
    /// stream. Returns when the FIN is on its way. Receiving goes on; later sends throw
    /// ``NetworkError/Code/outputFinished``.
    ///
    /// If the caller stops waiting, the end is sent all the same.
    public func finish(timeout: Duration? = nil) async throws {
        try await liveCore().finish(timeout: timeout)
    }

    // MARK: TCP

    /// What TCP knows of the connection at this moment (TCP_INFO). Throws
    /// ``NetworkError/Code/notSupported`` on a Unix socket and ``NetworkError/Code/closed`` where there
    /// is no socket, before the connection is ready or after it ended.
    public func transferReport() throws(NetworkError) -> TransferReport {
        let core = try liveCore()
        guard core.kind == .tcp else {
            throw NetworkError(.notSupported, .setup, "only TCP has a transfer report")
        }
        let information = try core.onSocket(.setup) { socket throws(SystemError) in
            try TCPInformation(socket)
        }
        return TransferReport(information)
    }
}

extension Connection where Top: StreamProtocol {
    /// Sends a file's bytes without copying them through the process (sendfile(2)); returns how many
    /// were sent, when the kernel has taken all of them.
    ///
    /// - Parameters:
    ///   - path: A regular file.
    ///   - offset: Where in the file to begin.
    ///   - count: How many bytes to send; nil for the rest of the file. Where the file is shorter, fewer
    ///     are sent.
    ///   - timeout: How long the whole may take.
    ///
    /// If the caller stops waiting in the middle, or the file cannot be read on, the sending side ends:
    /// the peer has a part of the file, and nothing can follow it. Throws
    /// ``NetworkError/Code/systemFailure`` with the errno if the file cannot be opened; nothing is sent
    /// then.
    @discardableResult
    public func sendFile(
        at path: String, from offset: Int = 0, count: Int? = nil, timeout: Duration? = nil
    ) async throws -> Int {
        let core = try liveCore()
        guard offset >= 0, count ?? 0 >= 0 else {
            throw NetworkError(.systemFailure, .send, "\(path): a negative offset or count")
        }
        return try await core.sendFile(path, from: offset, count: count, timeout: timeout)
    }
}
