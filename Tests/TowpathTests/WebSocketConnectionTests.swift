import TestSupport
import Testing
import Towpath

@Suite("WebSocket connections", .timeLimit(.minutes(1)))
struct WebSocketConnectionTests {
    @Test(
        "messages of every length are echoed, and their kinds with them",
        arguments: [0, 1, 125, 126, 65_535, 65_536, 200_000])
    func echoes(count: Int) async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let client = server.client()
            let bytes = Streams.pattern(count)
            try await client.send(.binary(bytes))
            guard case .binary(let answer) = try await client.receive() else {
                Issue.record("no binary message")
                return
            }
            Streams.expect(answer, toBe: bytes)
            let text = String(repeating: "ä", count: min(count, 20_000) / 2)
            try await client.send(.text(text))
            let isSame = try await client.receive() == .text(text)
            #expect(isSame)
            await client.close()
        }
    }

    @Test("through TLS it is the same")
    func secure() async throws {
        let authority = try TestAuthority()
        let identity = try authority.issue("IP:127.0.0.1")
        let server = try await WebSocketServer(WebSocket { TLS(identity: identity) })
        try await server.serve {
            let client = Connection(to: server.listener.localEndpoint) {
                WebSocket { TLS().trust(anchors: [authority.certificate]) }
            }
            for text in ["hello", String(repeating: "x", count: 200_000)] {
                try await client.send(.text(text))
                let isSame = try await client.receive() == .text(text)
                #expect(isSame)
            }
            #expect(client.tlsPeer?.version == .tls13)
            try await client.close(code: .normalClosure)
        }
    }

    @Test("messages come in order, and a sequence of them ends with the peer's orderly close")
    func ends() async throws {
        let server = try await WebSocketServer()
        try await server.serve { connection in
            for number in 0..<1_000 { try await connection.send(.text("\(number)")) }
        } while: {
            let client = server.client()
            var number = 0
            for try await message in client.messages {
                #expect(message == .text("\(number)"))
                number += 1
            }
            #expect(number == 1_000)
            #expect(client.closeStatus?.code == .normalClosure)
            let error = await Streams.failure { try await client.receive() }
            #expect(error?.code == .closedByPeer)
            #expect(error?.cause == client.closeStatus.map { .webSocket($0) })
        }
    }

    @Test("BR-035: the peer's code and reason are in the error")
    func closeStatus() async throws {
        let server = try await WebSocketServer()
        try await server.serve { connection in
            try await connection.close(code: .init(rawValue: 3_001), reason: "höher")
        } while: {
            let client = server.client()
            let error = await Streams.failure {
                for try await _ in client.messages {}
            }
            #expect(error?.code == .closedByPeer)
            #expect(client.closeStatus?.code.rawValue == 3_001)
            #expect(client.closeStatus?.reason == "höher")
            #expect(
                await Streams.failure { try await client.send(.text("x")) }?.code == .closedByPeer)
        }
    }

    @Test(
        "BR-035: codes that may not be sent and reasons that are too long are refused here",
        arguments: [
            (999, ""), (1_004, ""), (1_005, ""), (1_006, ""), (1_015, ""), (5_000, ""),
            (1_000, String(repeating: "x", count: 124)),
        ] as [(UInt16, String)])
    func unsendable(code: UInt16, reason: String) async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let client = server.client()
            let error = await Streams.failure {
                try await client.close(code: .init(rawValue: code), reason: reason)
            }
            #expect(error?.code == .optionFailed)
            try await client.send(.text("still there"))
            expectEqual(try await client.receive(), .text("still there"))
            await client.close()
        }
    }

    @Test("BR-035: a Close frame without a code is 1005, and is answered without one")
    func emptyClose() async throws {
        let server = try await WebSocketServer()
        let statuses = Inbox<WebSocketCloseStatus?>()
        try await server.serve { connection in
            try await echoMessages(connection)
            statuses.send(connection.closeStatus)
        } while: {
            let client = try await server.handmadeClient()
            try await client.send(HandmadeWebSocket.masked(0x88))
            expectEqual(try await client.receive(exactly: 2), [0x88, 0])
            expectEqual(try await client.receive(), nil)
            expectEqual(try await statuses.next()?.code, .noStatusReceived)
        }
    }

    enum Leaving: CaseIterable { case end, reset }

    @Test(
        "BR-046, BR-035: one that leaves without a Close frame is 1006", arguments: Leaving.allCases
    )
    func vanishes(leaving: Leaving) async throws {
        let server = try await HandmadeServer()
        try await server.serve { connection, accept in
            try await connection.send(HandmadeWebSocket.answer(accept).utf8)
            // The client's message says that it is there.
            _ = try await connection.receive(exactly: 7)
            if leaving == .reset { connection.abort() }
        } while: {
            let client = server.client()
            try await client.send(.text("x"))
            let error = await Streams.failure { try await client.receive() }
            #expect(error?.code == (leaving == .end ? .closedByPeer : .connectionReset))
            #expect(client.closeStatus?.code == .abnormalClosure)
        }
    }

    @Test("a ping is answered while nobody receives, and its round trip is measured")
    func pings() async throws {
        let server = try await WebSocketServer()
        let durations = Inbox<Duration>()
        try await server.serve { connection in
            durations.send(try await connection.ping())
            try await echoMessages(connection)
        } while: {
            let client = server.client()
            try await client.start()
            // The client only waits for something else.
            expectEqual(try await durations.next() > .zero, true)
            expectEqual(try await client.ping() > .zero, true)
            try await client.send(.text("x"))
            expectEqual(try await client.receive(), .text("x"))
            await client.close()
        }
    }

    @Test(
        "R-10: of many pings the last has its answer, and the peer that does not read costs little")
    func pingFlood() async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let client = try await server.handmadeClient()
            let flood = (0..<1_000).flatMap { _ in HandmadeWebSocket.masked(0x89, [1, 2, 3]) }
            for _ in 0..<10 { try await client.send(flood) }
            try await client.send(HandmadeWebSocket.masked(0x89, Array("last".utf8)))
            let pongs = try await client.receive(until: "last".utf8, limit: 1_000_000)
            #expect(pongs.prefix(2) == [0x8A, 3] && pongs.suffix(6).prefix(2) == [0x8A, 4])
            client.abort()
        }
    }

    @Test("a peer that does not answer pings any more ends the connection")
    func keepAlive() async throws {
        let server = try await HandmadeServer()
        let pings = Inbox<[UInt8]>()
        try await server.serve { connection, accept in
            try await connection.send(HandmadeWebSocket.answer(accept).utf8)
            while let chunk = try await connection.receive() { pings.send(chunk) }
        } while: {
            let client = server.client(
                WebSocket().keepAlive(every: .milliseconds(20), missedPongLimit: 2))
            let error = await Streams.failure { try await client.receive() }
            #expect(error?.code == .timedOut)
            expectEqual(try await pings.next().first, 0x89)
            if case .failed(let failure) = client.state, failure == error {
            } else {
                Issue.record("\(client.state)")
            }
            client.abort()
        }
    }

    @Test("a peer that answers pings stays, whatever else happens")
    func keptAlive() async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let client = server.client {
                $0.keepAlive(every: .milliseconds(1), missedPongLimit: 100_000)
            }
            for _ in 0..<20 { try await client.ping(timeout: nil) }
            try await client.send(.text("x"))
            expectEqual(try await client.receive(), .text("x"))
            await client.close()
        }
    }

    @Test("a message in fragments arrives whole, and others wait until it is")
    func fragments() async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let client = server.client()
            try await client.sendFragments(of: .text) { fragments in
                try await fragments.send("one, ")
                let other = Task { try await client.send(.binary([1])) }
                try await fragments.send("two, ")
                try await fragments.send(Array("thr\u{E9}".utf8.dropLast()))
                try await fragments.send([0xA9])
                _ = other
            }
            expectEqual(try await client.receive(), .text("one, two, thr\u{E9}"))
            expectEqual(try await client.receive(), .binary([1]))
            await client.close()
        }
    }

    @Test("a message that cannot be finished ends the connection")
    func brokenFragments() async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let client = server.client()
            await #expect(throws: CancellationError.self) {
                try await client.sendFragments(of: .binary) { fragments in
                    try await fragments.send([1, 2])
                    throw CancellationError()
                }
            }
            expectEqual(await Streams.failure { try await client.send(.text("x")) }?.code, .closed)
        }
    }

    @Test("messages of several tasks go whole, in frames of their own")
    func concurrentSends() async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let client = server.client()
            try await client.start()
            try await withThrowingTaskGroup { group in
                for number in 0..<20 {
                    group.addTask {
                        let text = String(repeating: Character("\(number % 10)"), count: 10_000)
                        try await client.send(.text(text))
                    }
                }
                group.addTask {
                    for _ in 0..<20 {
                        guard case .text(let text) = try await client.receive() else { return }
                        let isOne = text.utf8.count == 10_000 && Set(text).count == 1
                        #expect(isOne)
                    }
                }
                try await group.waitForAll()
            }
            await client.close()
        }
    }

    @Test("a cancelled receive loses nothing, and the timeout of one neither")
    func cancelledReceive() async throws {
        let server = try await WebSocketServer()
        try await server.serve {
            let client = server.client()
            try await client.start()
            let waiting = Task { try await client.receive() }
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            let error = await Streams.failure {
                try await client.receive(timeout: .milliseconds(1))
            }
            #expect(error?.code == .timedOut)
            try await client.send(.text("x"))
            expectEqual(try await client.receive(), .text("x"))
            await client.close()
        }
    }

    @Test("messages that nobody reads stop the sender")
    func backPressure() async throws {
        let server = try await WebSocketServer()
        let sent = Tally()
        try await server.serve { connection in
            let message = WebSocketMessage.binary(Streams.pattern(60_000))
            do {
                while true {
                    try await connection.send(message, timeout: .milliseconds(500))
                    sent.add()
                }
            } catch let error as NetworkError where error.code == .timedOut {
                sent.add(1_000_000)
            }
            // Nothing follows the message that was begun and is still on its way.
            try await connection.send(.text("end"))
        } while: {
            let client = server.client()
            _ = try await client.receive()
            try await Streams.until { sent.count >= 1_000_000 }
            #expect(sent.count < 1_001_000, "60 MB are nowhere")
            var count = 1
            while try await client.receive() != .text("end") { count += 1 }
            #expect(count >= sent.count - 1_000_000)
        }
    }

    @Test("BR-040: a message over the limit is 1009, and the sender is told")
    func tooBig() async throws {
        let server = try await WebSocketServer(WebSocket().maximumMessageSize(1_000))
        let errors = Inbox<NetworkError?>()
        try await server.serve { connection in
            errors.send(await Streams.failure { try await echoMessages(connection) })
        } while: {
            for isCompressed in [false, true] {
                let client = server.client {
                    $0.compression(isCompressed ? .enabled : .disabled)
                }
                try await client.send(.binary([UInt8](repeating: 0, count: 1_000)))
                expectEqual(try await client.receive().byteCount, 1_000)
                try await client.send(.binary([UInt8](repeating: 0, count: 1_001)))
                let error = await Streams.failure { try await client.receive() }
                #expect(error?.code == .closedByPeer && client.closeStatus?.code == .messageTooBig)
                expectEqual(try await errors.next()?.code, .messageTooLong)
            }
        }
    }

    @Test(
        "compressed messages are the same, whatever was agreed on",
        arguments: [
            WebSocket.Compression.enabled, .disabled, .enabled(keepsContext: false),
            .enabled(windowBits: 9), .enabled(windowBits: 15, level: 1, minimumSize: 0),
        ], [WebSocket.Compression.enabled, .enabled(windowBits: 10, keepsContext: false)])
    func compression(client: WebSocket.Compression, listener: WebSocket.Compression) async throws {
        let server = try await WebSocketServer(WebSocket().compression(listener))
        let isOffered = client != .disabled
        try await server.serve {
            let client = server.client { $0.compression(client) }
            for count in [0, 10, 100, 20_000, 3] {
                let text = String((0..<count).flatMap { "line \($0 % 100)\n" }.prefix(count))
                try await client.send(.text(text))
                let isSame = try await client.receive() == .text(text)
                #expect(isSame, "\(count)")
            }
            #expect(client.isCompressing == (listener != .disabled && isOffered))
            await client.close()
        }
    }
}
