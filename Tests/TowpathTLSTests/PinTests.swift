import Foundation
import TestSupport
import Testing
import TowpathTLS

@Suite("Pins")
struct PinTests {
    private static let other = Pin.sha256("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
    private static let another = Pin.sha256("//////////////////////////////////////////8=")

    @Test(
        "a pin is read as others write it",
        arguments: [
            "sha256/qOpdUA/vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawng=",
            "sha256//qOpdUA/vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawng=",
            "pin-sha256=\"qOpdUA/vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawng=\"",
        ])
    func forms(text: String) throws {
        let pin = try Pin(parsing: text)
        #expect(pin.description == "sha256/qOpdUA/vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawng=")
        #expect(pin.digest.count == 32)
    }

    @Test(
        "BR-026: what is no pin is refused",
        arguments: [
            "", "sha256/", "sha1/qOpdUA/vKw5mDgLedCZiWwtKiyw=", "sha256/%%%",
            "sha256/qOpdUA/vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawng",
            "sha256/qOpdUA/vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawg==",
            "a8ea5d500fef2b0e660e02de7426625b0b4a8b2cd342d3748c65a469bcdac278",
            "pin-sha256=\"qOpdUA/vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawng=",
            "sha256/ qOpdUA/vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawng=",
            "sha256/qOpdUA/vKw5mDgLedCZiWwtKiyzTQtN0jGWkabzawnh=",
        ])
    func malformed(text: String) {
        #expect(throws: CertificateError.self) { try Pin(parsing: text) }
    }

    @Test("a list of pins is read as curl has it")
    func list() throws {
        let pins = try Pin.parsing(list: "\(Self.other);\(Self.another)")
        #expect(pins == [Self.other, Self.another])
    }

    @Test(
        "BR-025: the pin of a key is what the openssl command line computes, also after a renewal",
        arguments: ["EC", "RSA-1024", "RSA-2048", "RSA-3072", "ED25519"])
    func spki(kind: String) async throws {
        guard Program.has("openssl") else { return }
        var request = TestAuthority.Request("leaf", ["DNS:localhost"])
        request.keyKind = kind
        let first = try TestAuthority(request)
        let renewed = try TestAuthority(request, reusing: first)
        let file = FileManager.default.temporaryDirectory
            .appending(path: "towpath-\(UInt64.random(in: 0 ... .max)).pem")
        defer { try? FileManager.default.removeItem(at: file) }
        try first.certificate.pem.write(to: file, atomically: true, encoding: .utf8)
        let end = try await Program.run([
            "/bin/bash", "-c",
            "openssl x509 -in \(file.path) -pubkey -noout | openssl pkey -pubin -outform der"
                + " | openssl dgst -sha256 -binary | openssl base64",
        ])
        let expected = "sha256/" + end.output.trimmingCharacters(in: .whitespacesAndNewlines)
        #expect(first.certificate.pin.description == expected)
        #expect(renewed.certificate.pin == first.certificate.pin)
        #expect(renewed.certificate != first.certificate)
    }

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
            try error { leaf, _, _ in PinSet([Self.other, leaf], backups: [Self.another]) } == nil)
        #expect(try error { _, middle, _ in PinSet([Self.other], backups: [middle]) } == nil)
        #expect(try error { _, _, root in PinSet([root], backups: [Self.other]) } == nil)
        let offered = Shared<[Pin]>([])
        let mismatch = try error { leaf, middle, root in
            offered.withLock { $0 = [leaf, middle, root] }
            return PinSet([Self.other], backups: [Self.another])
        }
        #expect(mismatch?.kind == .pinMismatch)
        for pin in offered.value {
            #expect(mismatch?.description.contains("\(pin)") == true, "\(mismatch as Any)")
        }
        let leafOnly = try error { _, middle, _ in
            var pins = PinSet([middle], backups: [Self.other])
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
        client.pins = PinSet([pinned.certificate.pin], backups: [Self.other])
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
                var pins = PinSet([Self.other], backups: [Self.another])
                pins.reportOnly = true
                return pins
            }, { #expect($0.reportedMismatch?.kind == .pinMismatch) })
        #expect(reported == nil)
        let expired = try error { _, _, _ in
            var pins = PinSet([Self.other], backups: [Self.another])
            pins.expires = 1_000_000_000
            return pins
        }
        #expect(expired == nil)
        for (pattern, counts) in [
            ("LOCALHOST", true), ("localhost.", true), ("**.localhost", true),
            ("*.localhost", false), ("example.com", false),
        ] {
            let error = try error { _, _, _ in
                var pins = PinSet([Self.other], backups: [Self.another])
                pins.hosts = [pattern]
                return pins
            }
            #expect((error?.kind == .pinMismatch) == counts, "\(pattern)")
        }
    }

    @Test("BR-026: a set that would let nobody in, or lock everybody out one day, is refused")
    func refusedSets() throws {
        let sets = [
            PinSet([]), PinSet([Self.other]), PinSet([Self.other], backups: [Self.other]),
            PinSet([.sha256("x")], backups: [Self.other]),
        ]
        for set in sets {
            var configuration = TLSConfiguration(.client)
            configuration.pins = set
            #expect(throws: TLSError.self) { try TLSContext(configuration) }
        }
        var configuration = TLSConfiguration(.client)
        configuration.pins = PinSet([Self.other], allowsNoBackup: true)
        #expect(throws: Never.self) { try TLSContext(configuration) }
        configuration.pins?.hosts = ["b\u{FC}cher.example"]
        #expect(throws: TLSError.self) { try TLSContext(configuration) }
    }

    @Test("a pinned key alone suffices for a server that signed itself, but its dates count")
    func pinnedKeyOnly() throws {
        var request = TestAuthority.Request("any name")
        let fresh = try TestAuthority(request)
        request.validity = -7_200 ... -3_600
        let expired = try TestAuthority(request)
        func error(_ server: TestAuthority, _ pin: Pin) throws -> TLSError? {
            var client = TLSConfiguration(.client)
            client.verification = .pinnedKeyOnly
            client.pins = PinSet([pin], allowsNoBackup: true)
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
