import TestSupport
import Testing
import TowpathTLS

@Suite("Pins in a handshake")
struct PinHandshakeTests {
    private static let other = Pin.sha256("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
    private static let another = Pin.sha256("//////////////////////////////////////////8=")

    /// The client's error where the server's chain is leaf, middle, root.
    private func error(
        _ make: (_ leaf: Pin, _ middle: Pin, _ root: Pin) -> PinSet,
        _ check: (TLSEngine) -> Void = { _ in }
    ) throws -> TLSError? {
        let root = try TestAuthority()
        let middle = try TestAuthority("Middle", by: root)
        let leaf = try TestAuthority(TestAuthority.Request("leaf", ["DNS:localhost"]), by: middle)
        var client = TLSConfiguration(.client)
        client.trust = .anchors([root.certificate])
        client.pins = make(leaf.certificate.pin, middle.certificate.pin, root.certificate.pin)
        var server = TLSConfiguration(.server)
        server.identities = [try leaf.identity()]
        let pair = try EnginePair(client, server)
        let error = pair.clientError()
        check(pair.client)
        return error
    }

    @Test("BR-026: one match anywhere in the validated chain is enough, and none is a failure")
    func matches() throws {
        #expect(
            try error { leaf, _, _ in PinSet(pins: [Self.other, leaf], backups: [Self.another]) }
                == nil)
        #expect(try error { _, middle, _ in PinSet(pins: [Self.other], backups: [middle]) } == nil)
        #expect(try error { _, _, root in PinSet(pins: [root], backups: [Self.other]) } == nil)
        let offered = Shared<[Pin]>([])
        let mismatch = try error { leaf, middle, root in
            offered.withLock { $0 = [leaf, middle, root] }
            return PinSet(pins: [Self.other], backups: [Self.another])
        }
        #expect(mismatch?.kind == .pinMismatch)
        for pin in offered.value {
            #expect(mismatch?.description.contains("\(pin)") == true, "\(mismatch as Any)")
        }
        let leafOnly = try error { _, middle, _ in
            var pins = PinSet(pins: [middle], backups: [Self.other])
            pins.leafOnly = true
            return pins
        }
        #expect(leafOnly?.kind == .pinMismatch)
    }

    @Test("a pinned certificate that a server only adds to its chain is none of it")
    func stuffed() throws {
        let (pinned, other) = (try TestAuthority("Pinned"), try TestAuthority("Other"))
        let leaf = try TestAuthority(TestAuthority.Request("leaf", ["DNS:localhost"]), by: other)
        var client = TLSConfiguration(.client)
        client.trust = .anchors([pinned.certificate, other.certificate])
        client.pins = PinSet(pins: [pinned.certificate.pin], backups: [Self.other])
        var server = TLSConfiguration(.server)
        server.identities = [try leaf.identity(chain: [pinned.certificate])]
        let pair = try EnginePair(client, server)
        #expect(pair.clientError()?.kind == .pinMismatch)
        #expect(pair.server.failure?.kind == .alert(42))
    }

    @Test("pins that are only reported, expired or for other hosts let the connection stand")
    func conditions() throws {
        let reported = try error(
            { _, _, _ in
                var pins = PinSet(pins: [Self.other], backups: [Self.another])
                pins.reportOnly = true
                return pins
            }, { #expect($0.reportedMismatch?.kind == .pinMismatch) })
        #expect(reported == nil)
        let expired = try error { _, _, _ in
            var pins = PinSet(pins: [Self.other], backups: [Self.another])
            pins.expires = 1_000_000_000
            return pins
        }
        #expect(expired == nil)
        for (pattern, counts) in [
            ("LOCALHOST", true), ("localhost.", true), ("**.localhost", true),
            ("*.localhost", false), ("example.com", false),
        ] {
            let error = try error { _, _, _ in
                PinSet(pins: [Self.other], backups: [Self.another], hosts: [pattern])
            }
            #expect((error?.kind == .pinMismatch) == counts, "\(pattern)")
        }
    }

    @Test("a pinned key alone suffices for a server that signed itself, but its dates count")
    func pinnedKeyOnly() throws {
        var request = TestAuthority.Request("any name")
        let fresh = try TestAuthority(request)
        request.validity = .past
        let expired = try TestAuthority(request)
        func error(_ server: TestAuthority, _ pin: Pin) throws -> TLSError? {
            var client = TLSConfiguration(.client)
            client.verification = .pinnedKeyOnly
            client.pins = PinSet.alone(pin)
            var configuration = TLSConfiguration(.server)
            configuration.identities = [try server.identity()]
            return try EnginePair(client, configuration).clientError()
        }
        #expect(try error(fresh, fresh.certificate.pin) == nil)
        #expect(try error(fresh, Self.other)?.kind == .pinMismatch)
        let late = try error(expired, expired.certificate.pin)
        #expect(late?.kind == .certificate(code: 10), "\(late as Any)")
    }
}

extension PinSet {
    /// Without a backup.
    fileprivate static func alone(_ pin: Pin) -> PinSet {
        var set = PinSet(pins: [pin])
        set.allowsNoBackup = true
        return set
    }
}
