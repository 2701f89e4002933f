import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("Connections through TLS", .timeLimit(.minutes(1)))
struct TLSConnectionTests {
    @Test("a client and a listener talk, and know what they agreed on")
    func talk() async throws {
        let server = try await SecureListener { tls, _ in tls.applicationProtocols("echo") }
        try await server.serve {
            let client = server.client { $0.applicationProtocols("other", "echo") }
            try await expectEcho(of: "hello", from: client)
            let peer = try #require(client.tlsPeer)
            #expect(peer.version == .tls13 && peer.applicationProtocol == "echo")
            #expect(peer.verifiedChain.last == server.root)
            #expect(peer.certificates.first?.ipAddresses == [[127, 0, 0, 1]])
            let report = try #require(client.establishmentReport)
            #expect(report.handshakeDuration.map { $0 > .zero && $0 <= report.duration } == true)
            #expect(client.state == .ready)
            let ours = try client.exportKeyingMaterial(label: "EXPERIMENTAL-x", count: 16)
            #expect(ours.count == 16)
            await client.close()
            #expect(client.tlsPeer == nil)
        }
    }

    @Test("large streams pass both ways at once, whole", arguments: [TLSVersion.tls12, .tls13])
    func large(version: TLSVersion) async throws {
        let server = try await SecureListener()
        let bytes = Streams.pattern(5_000_000)
        try await server.serve {
            let client = server.client { $0.version(minimum: version, maximum: version) }
            let sender = Task {
                try await client.send(bytes)
                try await client.finish()
            }
            var received: [UInt8] = []
            for try await chunk in client.chunks { received += chunk }
            try await sender.value
            Streams.expect(received, toBe: bytes)
            #expect(client.tlsPeer?.version == version)
            await client.close()
        }
    }

    @Test("every form of receive gets its bytes, also those that lie in the engine")
    func receives() async throws {
        let server = try await SecureListener()
        try await server.serve { connection in
            try await connection.send(Streams.pattern(40_000))
            try await connection.send("a line\nanother".utf8)
            try await connection.finish()
            _ = try await connection.receive(atMost: 1)
        } while: {
            let client = server.client()
            var bytes = try await client.receive(exactly: 17)
            while bytes.count < 40_000 {
                bytes += try #require(
                    await client.receive(atMost: min(1_000, 40_000 - bytes.count)))
            }
            Streams.expect(bytes, toBe: Streams.pattern(40_000))
            expectEqual(
                try await client.receive(until: "\n".utf8, limit: 100), Array("a line\n".utf8))
            // What a look without waiting can see lies in the engine.
            expectEqual(
                try await client.receive(atMost: 3, timeout: .seconds(20)), Array("ano".utf8))
            expectEqual(try await client.receive(atMost: 3, timeout: .zero), Array("the".utf8))
            expectEqual(try await client.receive(atMost: 3), Array("r".utf8))
            expectEqual(try await client.receive(atMost: 3), nil)
            expectEqual(try await client.receive(atMost: 3), nil)
            await client.close()
        }
    }

    @Test("small pieces go into one record")
    func gathered() async throws {
        let server = try await SecureListener()
        try await server.serve {
            let client = server.client()
            try await expectEcho(of: "x", from: client)
            let before = try client.transferReport().sentByteCount
            let pieces = (0..<100).map { [UInt8(truncatingIfNeeded: $0)] }
            try await client.send(contentsOf: pieces)
            expectEqual(try await client.receive(exactly: 100), Array(pieces.joined()))
            // 5 bytes of head, 1 for the kind, 16 of authentication (RFC 8446 §5.2).
            #expect(try client.transferReport().sentByteCount - before == 100 + 22)
            await client.close()
        }
    }

    @Test("files are sent through it")
    func files() async throws {
        let server = try await SecureListener()
        try await server.serve {
            let client = server.client()
            let path = "Package.swift"
            let count = try await client.sendFile(at: path)
            let bytes = try await client.receive(exactly: count)
            #expect(String(decoding: bytes, as: UTF8.self).hasPrefix("// swift-tools-version"))
            await client.close()
        }
    }

    @Test("BR-017: who has finished sending still gets everything", arguments: [true, false])
    func halfClose(clientFirst: Bool) async throws {
        let server = try await SecureListener()
        let answer = Streams.pattern(1_000_000)
        try await server.serve { connection in
            if clientFirst {
                expectEqual(try await connection.receive(atMost: 100), Array("ask".utf8))
                expectEqual(try await connection.receive(atMost: 100), nil)
                try await connection.send(answer)
            } else {
                try await connection.finish()
                var received: [UInt8] = []
                for try await chunk in connection.chunks { received += chunk }
                Streams.expect(received, toBe: answer)
            }
        } while: {
            let client = server.client()
            if clientFirst {
                try await client.send("ask".utf8)
                try await client.finish()
                var received: [UInt8] = []
                for try await chunk in client.chunks { received += chunk }
                Streams.expect(received, toBe: answer)
            } else {
                expectEqual(try await client.receive(atMost: 1), nil)
                try await client.send(answer)
                try await client.finish()
            }
            await client.close()
        }
    }

    @Test("BR-016 (f): an end without the closing alert is a truncation, and what came is kept")
    func truncated() async throws {
        let server = try await SecureListener()
        try await server.serve { connection in
            try await connection.send("half of it".utf8)
            try connection.withSocket { $0.shutdownOutput() }
            _ = try? await connection.receive(atMost: 1)
        } while: {
            let client = server.client()
            expectEqual(try await client.receive(exactly: 10), Array("half of it".utf8))
            let error = await Streams.failure { try await client.receive(atMost: 1) }
            #expect(error == Streams.error(.truncated))
            client.abort()
        }
    }

    @Test("a cancelled receive loses nothing, and a send that was given up keeps records whole")
    func cancellation() async throws {
        let server = try await SecureListener()
        // More than the kernel takes of a connection.
        let bytes = Streams.pattern(20_000_000)
        let begins = Inbox<Void>()
        try await server.serve { connection in
            try await begins.next()
            var received: [UInt8] = []
            while received.count < bytes.count {
                received += try await connection.receive(atMost: 65_536) ?? []
            }
            Streams.expect(received, toBe: bytes)
            try await connection.send("thanks".utf8)
        } while: {
            let client = server.client()
            try await client.start()
            let receive = Task { try await client.receive(exactly: 6) }
            receive.cancel()
            await #expect(throws: CancellationError.self) { try await receive.value }
            let send = Task { try await client.send(bytes, timeout: .milliseconds(200)) }
            let error = await Streams.failure { try await send.value }
            #expect(error == Streams.error(.timedOut))
            begins.send(())
            expectEqual(try await client.receive(exactly: 6), Array("thanks".utf8))
            await client.close()
        }
    }

    @Test("several tasks send, each whole")
    func senders() async throws {
        let server = try await SecureListener()
        let counts = try await server.serve { connection in
            var received: [UInt8] = []
            for try await chunk in connection.chunks { received += chunk }
            try await connection.send(received)
        } while: {
            let client = server.client()
            try await withThrowingTaskGroup { group in
                for number in UInt8(0)..<8 {
                    group.addTask {
                        try await client.send([UInt8](repeating: number, count: 100_000))
                    }
                }
                try await group.waitForAll()
            }
            try await client.finish()
            var runs: [(UInt8, Int)] = []
            for try await chunk in client.chunks {
                for byte in chunk {
                    if runs.last?.0 == byte {
                        runs[runs.count - 1].1 += 1
                    } else {
                        runs.append((byte, 1))
                    }
                }
            }
            await client.close()
            return runs.map(\.1)
        }
        #expect(counts == [Int](repeating: 100_000, count: 8))
    }

    @Test("a session is taken up again by the next connection, but not with other trust")
    func resumption() async throws {
        let server = try await SecureListener()
        try await server.serve {
            for (number, isResumed) in [false, true, true].enumerated() {
                let client = server.client()
                try await expectEcho(of: "round \(number)", from: client)
                #expect(client.tlsPeer?.isResumed == isResumed, "round \(number)")
                await client.close()
            }
            let other = try TestAuthority().certificate
            let stranger = Connection(to: server.listener.localEndpoint) {
                TLS().trust(anchors: [other])
            }
            let error = await Streams.failure { try await stranger.start() }
            #expect(error == Streams.error(.certificateInvalid))
            // The same host by another name, which the certificate does not have.
            let renamed = server.client { $0.serverName("wrong.invalid") }
            let mismatch = await Streams.failure { try await renamed.start() }
            #expect(mismatch == Streams.error(.certificateInvalid), "\(mismatch as Any)")
            let fresh = server.client { $0.resumption(false) }
            try await expectEcho(of: "fresh", from: fresh)
            #expect(fresh.tlsPeer?.isResumed == false)
            await fresh.close()
        }
    }

    @Test("a Unix socket needs a name to check, and then is as good")
    func unix() async throws {
        let authority = try TestAuthority()
        let tls = TLS(identity: try authority.issue("DNS:service.local"))
        let name = "towpath-\(UInt64.random(in: 0 ... .max))"
        let listener = try await Listener(on: .abstract(name)) { tls }
        try await serving(listener, echo) {
            let trusting = TLS().trust(anchors: [authority.certificate])
            let nameless = Connection(to: .abstract(name)) { trusting }
            let error = await Streams.failure { try await nameless.start() }
            #expect(error == Streams.error(.optionFailed), "\(error as Any)")
            let client = Connection(to: .abstract(name)) { trusting.serverName("service.local") }
            try await expectEcho(of: "unix", from: client)
            await client.close()
        }
    }
}
