import CTowpathOpenSSL
import TestSupport
import Testing
import TowpathTLS

@Suite("A server's word of its authority on revocation (OCSP)")
struct StapleTests {
    /// What an authority says of a certificate, by the openssl command line.
    private func response(
        by root: CertificateAuthority, about leaf: Certificate, isRevoked: Bool
    ) async throws -> [UInt8] {
        let folder = try TemporaryFolder()
        try folder.write(root.certificate.pem.utf8, to: "root.pem")
        try folder.write(root.key.pem.utf8, to: "root.key")
        try folder.write(leaf.pem.utf8, to: "leaf.pem")
        let state = isRevoked ? "R\t491231000000Z\t200101000000Z" : "V\t491231000000Z\t"
        try folder.write(
            "\(state)\t\(leaf.serialNumber)\tunknown\t/CN=leaf\n".utf8, to: "index.txt")
        _ = try await folder.run(
            "openssl ocsp -issuer root.pem -cert leaf.pem -no_nonce -reqout request.der"
                + " && openssl ocsp -index index.txt -CA root.pem -rsigner root.pem -rkey root.key"
                + " -reqin request.der -respout response.der -ndays 7")
        return try folder.bytes(of: "response.der")
    }

    private func error(
        _ staple: TLSConfiguration.Staple, _ root: CertificateAuthority, _ identity: Identity,
        _ response: [UInt8]
    ) throws -> TLSError? {
        var client = TLSConfiguration(.client)
        client.trust = .anchors([root.certificate])
        client.staple = staple
        var server = TLSConfiguration(.server)
        server.identities = [identity]
        server.stapledResponse = response
        return try EnginePair(client, server).clientError()
    }

    @Test("good, revoked, missing and foreign staples, where they are asked for and required")
    func staples() async throws {
        guard Program.has("openssl") else { return }
        let root = try CertificateAuthority()
        let (identity, other) = (try root.identity(), try root.identity())
        let good = try await response(by: root, about: identity.leaf, isRevoked: false)
        let revoked = try await response(by: root, about: identity.leaf, isRevoked: true)
        let foreign = try await response(by: root, about: other.leaf, isRevoked: false)
        let revocation = TLSError.Kind.certificate(code: X509_V_ERR_CERT_REVOKED)
        let missing = TLSError.Kind.certificate(code: X509_V_ERR_OCSP_VERIFY_NEEDED)
        let invalid = TLSError.Kind.certificate(code: X509_V_ERR_OCSP_VERIFY_FAILED)
        let cases: [([UInt8], TLSConfiguration.Staple, TLSError.Kind?)] = [
            (good, .requested, nil), (good, .required, nil),
            (revoked, .requested, revocation), (revoked, .required, revocation),
            ([], .requested, nil), ([], .required, missing), (revoked, .ignored, nil),
            (foreign, .requested, nil), (foreign, .required, invalid),
            ([1, 2, 3], .required, invalid),
        ]
        for (response, staple, expected) in cases {
            let error = try error(staple, root, identity, response)
            #expect(error?.kind == expected, "\(response.count) bytes, \(staple): \(error as Any)")
        }
    }
}
