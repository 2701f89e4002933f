import CTowpathOpenSSL
import TestSupport
import Testing
import TowpathTLS

@Suite("The TLS engine, without sockets")
struct EngineTests {
    private static let text = Array("The quick brown fox jumps over the lazy dog".utf8)

    private func configured(_ version: TLSVersion) throws -> EnginePair {
        try .make { client, _ in
            client.minimumVersion = version
            client.maximumVersion = version
        }
    }

    @Test("two engines agree, and bytes go both ways", arguments: [TLSVersion.tls12, .tls13])
    func echo(version: TLSVersion) throws {
        let pair = try configured(version)
        try pair.establish()
        #expect(pair.client.version == version && pair.server.version == version)
        #expect(pair.client.cipherSuite == pair.server.cipherSuite)
        #expect(pair.client.verifiedChain.count == 2)
        #expect(pair.client.peerCertificates.first?.dnsNames == ["localhost"])
        #expect(pair.server.serverName == "localhost")
        try pair.client.write(Self.text)
        pair.move()
        #expect(pair.server.readAll().bytes == Self.text)
        try pair.server.write(Self.text.reversed())
        pair.move()
        let (bytes, end) = pair.client.readAll()
        #expect(bytes == Self.text.reversed())
        #expect(end.wantsInput)
    }

    @Test("the cuts of the ciphertext do not matter", arguments: [TLSVersion.tls12, .tls13])
    func splits(version: TLSVersion) throws {
        let large = (0..<70_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var random = SplitMix64(seed: 7)
        for round in 0..<12 {
            var pair = try configured(version)
            let seed = random.next()
            let source = Shared(SplitMix64(seed: seed))
            pair.split =
                round == 0
                ? { _ in 1 }
                : { count in source.withLock { Int.random(in: 1...min(count, 3_000), using: &$0) } }
            try pair.establish()
            try pair.client.write(round == 0 ? Self.text : large)
            pair.move()
            let read = pair.server.readAll(round == 1 ? 1 : 5_000)
            let isWhole = read.bytes == (round == 0 ? Self.text : large)
            #expect(isWhole, "seed \(seed)")
            #expect(read.end.wantsInput)
        }
    }

    @Test("R-08: new keys that are asked for in the middle of a write leave both directions whole")
    func keyUpdate() throws {
        let pair = try configured(.tls13)
        try pair.establish()
        let large = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        // Half of it is encrypted and still with the server when the question comes.
        try pair.server.write(Array(large.prefix(500_000)))
        for _ in 0..<3 {
            #expect(SSL_key_update(pair.client.ssl, SSL_KEY_UPDATE_REQUESTED) == 1)
            try pair.client.write(Self.text)
            pair.server.feed(pair.client.output)
            pair.client.sent(pair.client.output.count)
            #expect(pair.server.readAll().bytes == Self.text)
        }
        try pair.server.write(Array(large.suffix(500_000)))
        pair.move()
        let isWhole = pair.client.readAll().bytes == large
        #expect(isWhole)
        try pair.client.write(Self.text)
        pair.move()
        #expect(pair.server.readAll().bytes == Self.text)
    }

    @Test("BR-019: a record that is read piece by piece needs no further ciphertext")
    func pending() throws {
        let pair = try configured(.tls13)
        try pair.establish()
        let record = [UInt8](repeating: 7, count: 16_384)
        try pair.server.write(record + record)
        pair.move()
        #expect(pair.client.readAll(1_000).bytes.count == 32_768)
        // A part of a record is nothing to read, and no reason to look again.
        try pair.server.write(record)
        let output = [UInt8](pair.server.output)
        pair.client.feed(output.prefix(3))
        #expect(pair.client.peek().wantsInput)
        #expect(pair.client.readAll().bytes.isEmpty)
        pair.client.feed(output.dropFirst(3))
        let isWhole = pair.client.readAll().bytes == record
        #expect(isWhole)
    }

    @Test("close_notify is an end in order; a stream without it was cut", arguments: [true, false])
    func ends(isOrderly: Bool) throws {
        let pair = try configured(.tls13)
        try pair.establish()
        try pair.server.write(Self.text)
        if isOrderly { pair.server.close() }
        pair.move()
        pair.client.endInput()
        let (bytes, end) = pair.client.readAll()
        #expect(bytes == Self.text)
        if isOrderly {
            #expect(end.isEnd)
        } else {
            #expect(end.error?.kind == .truncated)
        }
        // And so for ever.
        #expect(pair.client.readAll().end.isEnd == isOrderly)
    }

    @Test(
        "BR-017: one side may end while the other goes on", arguments: [TLSVersion.tls12, .tls13])
    func halfClose(version: TLSVersion) throws {
        let pair = try configured(version)
        try pair.establish()
        try pair.client.write(Self.text)
        pair.client.close()
        pair.move()
        let request = pair.server.readAll()
        #expect(request.bytes == Self.text && request.end.isEnd)
        let answer = [UInt8](repeating: 9, count: 1_000_000)
        try pair.server.write(answer)
        pair.server.close()
        pair.move()
        let read = pair.client.readAll(65_536)
        let isWhole = read.bytes == answer
        #expect(isWhole && read.end.isEnd)
    }

    @Test(
        "every prefix of a handshake ends as a truncation", arguments: [TLSVersion.tls12, .tls13])
    func prefixes(version: TLSVersion) throws {
        // How much each side sends in a whole handshake.
        let counts = Shared([true: 0, false: 0])
        var whole = try configured(version)
        whole.tamper = { fromClient, bytes in
            counts.withLock { $0[fromClient, default: 0] += bytes.count }
        }
        try whole.establish()
        for fromClient in [true, false] {
            let count = try #require(counts.value[fromClient])
            // Every 7th place: each kind of message is cut at many.
            for length in stride(from: 0, to: count - 1, by: 7) {
                var pair = try configured(version)
                let left = Shared(length)
                pair.tamper = { isClient, bytes in
                    guard isClient == fromClient else { return }
                    left.withLock { left in
                        bytes = Array(bytes.prefix(left))
                        left -= bytes.count
                    }
                }
                _ = pair.handshake()
                let victim = fromClient ? pair.server : pair.client
                victim.endInput()
                if victim.isEstablished {
                    // All that was missing are tickets, which nobody has to read.
                    let end = victim.readAll().end
                    #expect(end.error?.kind == .truncated, "\(length) of \(count)")
                } else if case .failed(let error) = victim.handshake() {
                    #expect(error.kind == .truncated, "\(length) of \(count): \(error)")
                } else {
                    Issue.record("\(length) of \(count): neither done nor failed")
                }
            }
        }
    }

    @Test("no corrupted byte crashes, hangs or alters the plaintext", arguments: [true, false])
    func corruption(fromClient: Bool) throws {
        let root = try TestAuthority()
        var clientConfiguration = TLSConfiguration(.client)
        clientConfiguration.trust = .anchors([root.certificate])
        var serverConfiguration = TLSConfiguration(.server)
        serverConfiguration.identities = [try root.issue("DNS:localhost")]
        let client = try TLSContext(clientConfiguration)
        let server = try TLSContext(serverConfiguration)
        for place in 0..<400 {
            var pair = try EnginePair(client, server)
            let offset = Shared(place * 5)
            pair.tamper = { isClient, bytes in
                guard isClient == fromClient else { return }
                offset.withLock { offset in
                    if bytes.indices.contains(offset) { bytes[offset] ^= 0x55 }
                    offset -= bytes.count
                }
            }
            guard case .established = pair.handshake() else {
                #expect(
                    pair.client.failure != nil || pair.server.failure != nil
                        || !pair.client.isEstablished || !pair.server.isEstablished)
                continue
            }
            try pair.client.write(Self.text)
            pair.move()
            let read = pair.server.readAll()
            #expect(read.bytes == Self.text || read.end.error != nil || pair.client.failure != nil)
        }
    }

    @Test("plain text to a server, and from one, is called that")
    func plain() throws {
        let requests = [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "EHLO example.com\r\n", "SSH-2.0-x\r\n",
        ]
        for request in requests {
            let pair = try configured(.tls13)
            pair.server.feed(Array(request.utf8))
            guard case .failed(let error) = pair.server.handshake() else {
                Issue.record("no error for \(request)")
                continue
            }
            #expect(error.kind == .notTLS, "\(error)")
        }
        let pair = try configured(.tls13)
        _ = pair.client.handshake()
        pair.client.feed(Array("220 mail.example.com ESMTP\r\n".utf8))
        guard case .failed(let error) = pair.client.handshake() else { return #expect(Bool(false)) }
        #expect(error.kind == .notTLS, "\(error)")
    }

    @Test("BR-020: an error of one connection is none of another's, on the same thread")
    func errorQueue() throws {
        let good = try configured(.tls13)
        try good.establish()
        for _ in 0..<100 {
            let bad = try configured(.tls13)
            bad.server.feed(Array("garbage that is no record".utf8))
            _ = bad.server.handshake()
            let other = try EnginePair.make { client, _ in client.trust = .anchors([]) }
            _ = other.handshake()
            try good.client.write(Self.text)
            good.move()
            #expect(good.server.readAll().bytes == Self.text)
        }
    }

    @Test("both sides export the same bytes, and others for another label")
    func exporter() throws {
        let pair = try configured(.tls13)
        try pair.establish()
        let label = "EXPERIMENTAL-towpath"
        let ours = try pair.client.exportKeyingMaterial(label: label, context: [1], count: 32)
        let theirs = try pair.server.exportKeyingMaterial(label: label, context: [1], count: 32)
        #expect(ours == theirs && ours.count == 32)
        let other = try pair.client.exportKeyingMaterial(label: label, context: nil, count: 32)
        #expect(other != ours)
    }

    @Test("a session is taken up again", arguments: [TLSVersion.tls12, .tls13])
    func resumption(version: TLSVersion) throws {
        let root = try TestAuthority()
        var configuration = TLSConfiguration(.client)
        configuration.trust = .anchors([root.certificate])
        configuration.minimumVersion = version
        configuration.maximumVersion = version
        var serverConfiguration = TLSConfiguration(.server)
        serverConfiguration.identities = [try root.issue("DNS:localhost")]
        let (client, server) = (try TLSContext(configuration), try TLSContext(serverConfiguration))
        let first = try EnginePair(client, server)
        let sessions = Shared<[TLSSession]>([])
        first.client.onSession = { session in sessions.withLock { $0.append(session) } }
        try first.establish()
        _ = first.client.readAll()
        let session = try #require(sessions.value.first)
        #expect(session.isSingleUse == (version == .tls13))
        let second = try EnginePair(client, server, resuming: session)
        try second.establish()
        #expect(second.client.isResumed && second.server.isResumed && !first.client.isResumed)
        try second.client.write(Self.text)
        second.move()
        #expect(second.server.readAll().bytes == Self.text)
    }
}
