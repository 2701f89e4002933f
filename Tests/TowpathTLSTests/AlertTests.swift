import TestSupport
import Testing
import TowpathTLS

/// Which alert of RFC 8446 §6.2 a server hears when its certificate is refused.
@Suite("Alerts for certificates")
struct AlertTests {
    enum Fault: CaseIterable { case expired, notYetValid, unknownAuthority, otherName, otherPin }

    @Test("the alert says what is wrong", arguments: Fault.allCases)
    func alert(fault: Fault) throws {
        let identity = try Identity.selfSigned(names: ["example.com"])
        let leaf = try #require(identity.certificates.first)
        var server = TLSConfiguration(.server)
        server.identities = [identity]
        var client = TLSConfiguration(.client)
        client.trust = .anchors([leaf])
        var name = "example.com"
        let expected: (alert: UInt8, code: Int32?)
        switch fault {
        case .expired:
            client.verificationTime = leaf.notAfter + 1
            expected = (45, 10)
        case .notYetValid:
            client.verificationTime = leaf.notBefore - 1
            expected = (42, 9)
        case .unknownAuthority:
            client.trust = .anchors(try Identity.selfSigned().certificates)
            expected = (48, 18)
        case .otherName:
            name = "example.org"
            expected = (42, 62)
        case .otherPin:
            client.pins = PinSet(
                pins: [try Identity.selfSigned().pin], backups: [try Identity.selfSigned().pin])
            expected = (42, nil)
        }
        let outcome = try EnginePair(client, server, to: .checked(name)).errors()
        #expect(
            outcome.client?.kind == expected.code.map { .certificate(code: $0) } ?? .pinMismatch)
        #expect(outcome.server?.kind == .alert(expected.alert))
    }
}
