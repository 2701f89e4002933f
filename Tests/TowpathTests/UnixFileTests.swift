import Glibc
import Testing
import Towpath
import TowpathReactor

/// One after the other: the umask is the whole process's.
@Suite("The file of a Unix listener", .serialized, .timeLimit(.minutes(1)))
struct UnixFileTests {
    @Test(
        "its mode is exactly what was asked for, whatever the umask", arguments: [0, 0o27, 0o77])
    func mode(mask: mode_t) async throws {
        try await withFolder { folder in
            for mode in [0o600, 0o660, 0o666, 0o777, 0o700] as [UInt32] {
                let path = "\(folder)/socket"
                let listener = try await withMask(mask) {
                    try await Listener(
                        on: .unix(path), parameters: Parameters().unixSocketMode(mode)
                    ) { TCP() }
                }
                #expect(permissions(of: path) == mode)
                listener.close()
            }
        }
    }

    @Test("without a mode the umask decides", arguments: [0, 0o22, 0o77])
    func defaultMode(mask: mode_t) async throws {
        try await withFolder { folder in
            let path = "\(folder)/socket"
            let listener = try await withMask(mask) {
                try await Listener(on: .unix(path)) { TCP() }
            }
            #expect(permissions(of: path) == 0o777 & ~mask)
            listener.close()
        }
    }

    @Test("at no moment is it open to more than it will be", arguments: [0, 0o77])
    func noWiderMoment(mask: mode_t) async throws {
        try await withFolder { folder in
            let path = "\(folder)/socket"
            let (over, looks, wider) = (Tally(), Tally(), Tally())
            // On a thread of its own, that looks all the time.
            let watcher = Watching {
                while over.count == 0 {
                    guard let mode = permissions(of: path) else { continue }
                    looks.add()
                    if mode & ~0o600 != 0 { wider.add() }
                }
            }
            try await withMask(mask) {
                var made = 0
                while made < 300 || looks.count == 0 {
                    try await Listener(
                        on: .unix(path), parameters: Parameters().unixSocketMode(0o600)
                    ) { TCP() }.close()
                    made += 1
                }
            }
            over.add()
            await watcher.end()
            #expect(wider.count == 0)
        }
    }

    // MARK: What lies there already

    @Test("a stale file is replaced, also one of another mode")
    func stale() async throws {
        try await withFolder { folder in
            let path = "\(folder)/socket"
            makeStaleSocket(path)
            let old = identity(of: path)
            let listener = try await Listener(
                on: .unix(path), parameters: Parameters().unixSocketMode(0o640)
            ) { TCP() }
            #expect(identity(of: path) != old)
            #expect(permissions(of: path) == 0o640)
            try await serving(listener, echo) {
                try await expectEcho(of: "mine now", from: listener.client())
            }
        }
    }

    @Test("a live one is an error, and goes on serving")
    func live() async throws {
        try await withFolder { folder in
            let listener = try await Listener(on: .unix("\(folder)/socket")) { TCP() }
            let old = identity(of: "\(folder)/socket")
            try await serving(listener, echo) {
                let error = try await #require(throws: NetworkError.self) {
                    _ = try await Listener(on: listener.localEndpoint) { TCP() }
                }
                #expect(error.code == .addressUnavailable)
                #expect(error.message.contains("\(folder)/socket"))
                try await expectEcho(of: "still mine", from: listener.client())
            }
            #expect(old != nil)
        }
    }

    @Test("one that is live but full is live")
    func liveAndFull() async throws {
        try await withFolder { folder in
            let path = "\(folder)/socket"
            let address = try #require(SocketAddress(unix: Array(path.utf8), abstract: false))
            let socket = try PlainSocket.bound(to: address, backlog: 0)
            let filler = try PlainSocket(.unix)
            #expect(filler.descriptor.connect(to: address) == .done(0))
            await #expect(throws: NetworkError(.addressUnavailable, .listen, "")) {
                _ = try await Listener(on: .unix(path)) { TCP() }
            }
            withExtendedLifetime(socket) {}
        }
    }

    @Test("a regular file is an error, and is not touched")
    func regularFile() async throws {
        try await withFolder { folder in
            let path = "\(folder)/precious"
            close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o644))
            let old = identity(of: path)
            let error = try await #require(throws: NetworkError.self) {
                _ = try await Listener(on: .unix(path)) { TCP() }
            }
            #expect(error.code == .addressUnavailable)
            #expect(error.message.contains(path))
            #expect(identity(of: path) == old)
        }
    }

    @Test("a link to a stale socket is not followed")
    func link() async throws {
        try await withFolder { folder in
            makeStaleSocket("\(folder)/socket")
            symlink("\(folder)/socket", "\(folder)/link")
            await #expect(throws: NetworkError(.addressUnavailable, .listen, "")) {
                _ = try await Listener(on: .unix("\(folder)/link")) { TCP() }
            }
            #expect(identity(of: "\(folder)/socket") != nil)
        }
    }

    @Test("a folder that is not there is named in the error")
    func noFolder() async throws {
        try await withFolder { folder in
            let error = try await #require(throws: NetworkError.self) {
                _ = try await Listener(on: .unix("\(folder)/nosuch/socket")) { TCP() }
            }
            #expect(error.message.contains("\(folder)/nosuch/socket"))
            #expect(error.cause == .system(errno: ENOENT, call: "bind"))
        }
    }

    @Test(
        "a folder in which one may not write is not permitted",
        .enabled(if: !isRoot, "only for an ordinary user"))
    func permission() async throws {
        try await withFolder { folder in
            chmod(folder, 0o500)
            await #expect(throws: NetworkError(.permissionDenied, .listen, "")) {
                _ = try await Listener(on: .unix("\(folder)/socket")) { TCP() }
            }
        }
    }

    // MARK: Its end

    enum End: CaseIterable { case close, drop, drain, cancel }

    @Test("it goes with the listener", arguments: End.allCases)
    func removed(end: End) async throws {
        try await withFolder { folder in
            try await Self.listen(at: "\(folder)/socket", until: end) {}
            #expect(identity(of: "\(folder)/socket") == nil)
        }
    }

    @Test("what somebody else put in its place stays", arguments: End.allCases)
    func replaced(end: End) async throws {
        try await withFolder { folder in
            let path = "\(folder)/socket"
            try await Self.listen(at: path, until: end) {
                unlink(path)
                makeStaleSocket(path)
            }
            #expect(identity(of: path) != nil)
        }
    }

    private static func listen(
        at path: String, until end: End, _ body: () -> Void
    ) async throws {
        let listener = try await Listener(on: .unix(path)) { TCP() }
        #expect(identity(of: path) != nil)
        if end == .drop { return body() }
        let running = Task { try await listener.run(echo) }
        try await expectEcho(of: "hello", from: listener.client())
        body()
        switch end {
        case .close: listener.close()
        case .drain: listener.drain()
        case .cancel: running.cancel()
        case .drop: break
        }
        _ = await running.result
    }
}

private func withMask<Value>(
    _ mask: mode_t, _ body: () async throws -> Value
) async rethrows -> Value {
    let old = umask(mask)
    defer { umask(old) }
    return try await body()
}
