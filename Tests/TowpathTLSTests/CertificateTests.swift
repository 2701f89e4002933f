import TestSupport
import Testing
import TowpathTLS

@Suite("Certificates")
struct CertificateTests {
    @Test(
        "what a certificate says is what the openssl command line says",
        .enabled(if: Program.has("openssl")))
    func fields() async throws {
        let folder = try TemporaryFolder()
        try await folder.run(
            """
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-384 -nodes -keyout k.pem -out \
            c.pem -utf8 -subj '/C=DE/O=Bücher, \"Ltd\"/CN=a' -addext \
            'subjectAltName=DNS:A.example,DNS:*.b.example,IP:192.0.2.1,IP:2001:db8::1,\
            email:x@y.example,URI:spiffe://a/b'
            """)
        let certificate = try #require(
            try Certificate.reading(file: folder.path("c.pem")).first)
        let said = try await folder.run(
            "openssl x509 -in c.pem -noout -nameopt RFC2253 -subject -issuer -serial")
        #expect(
            """
            subject=\(certificate.subject)
            issuer=\(certificate.issuer)
            serial=\(certificate.serialNumber)

            """ == said)
        let dates = try await folder.run(
            """
            for d in startdate enddate; do \
            date -d "$(openssl x509 -in c.pem -noout -$d | cut -d= -f2)" +%s; done
            """)
        #expect("\(certificate.notBefore)\n\(certificate.notAfter)\n" == dates)
        #expect(certificate.dnsNames == ["A.example", "*.b.example"])
        #expect(
            certificate.ipAddresses == [
                [192, 0, 2, 1], [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            ])
        #expect(certificate.emailAddresses == ["x@y.example"])
        #expect(certificate.uris == ["spiffe://a/b"])
        #expect(certificate.isSelfSigned && certificate.isAuthority)
        #expect(certificate.keyDescription == "EC P-384")
        #expect(try certificate.pem == String(decoding: folder.bytes(of: "c.pem"), as: UTF8.self))
        #expect(certificate.description == "\(certificate.subject) (EC P-384)")
    }

    @Test("two that were read apart are equal if their DER is")
    func equality() throws {
        let authority = try CertificateAuthority()
        let one = authority.certificate
        let other = try authority.identity().leaf
        let again = try Certificate(der: one.der)
        #expect(again == one && again.hashValue == one.hashValue && one != other)
        #expect(try Certificate.parsing(pem: one.pem + other.pem) == [one, other])
        #expect(Set([one, other, again]).count == 2)
        #expect(Certificate(referencing: one.pointer) == one)
    }

    @Test("an authority, its intermediate and a leaf say what they are")
    func kinds() throws {
        let root = try CertificateAuthority(key: .ed25519)
        let middle = try root.intermediate(key: .rsa(bits: 2048), pathLength: 0)
        let identity = try middle.identity(names: ["localhost", "127.0.0.1"])
        #expect(root.certificate.isSelfSigned && root.certificate.isAuthority)
        #expect(!middle.certificate.isSelfSigned && middle.certificate.isAuthority)
        #expect(!identity.leaf.isSelfSigned && !identity.leaf.isAuthority)
        #expect(identity.certificates == [identity.leaf, middle.certificate])
        #expect(identity.leaf.issuer == middle.certificate.subject)
        #expect(root.certificate.keyDescription == "ED25519")
        #expect(middle.certificate.keyDescription == "RSA 2048")
        #expect(root.certificate.notBefore == CertificateAuthority.notBefore)
        #expect(root.certificate.notAfter == CertificateAuthority.notAfter)
    }

    @Test(
        "the openssl command line accepts what the authority issues, until it is revoked",
        .enabled(if: Program.has("openssl")))
    func verification() async throws {
        let folder = try TemporaryFolder()
        let root = try CertificateAuthority()
        let middle = try root.intermediate()
        let good = try middle.identity()
        let revoked = try middle.identity()
        try folder.write(root.certificate.pem.utf8, to: "root.pem")
        try folder.write(middle.certificate.pem.utf8, to: "middle.pem")
        try folder.write(good.leaf.pem.utf8, to: "good.pem")
        try folder.write(revoked.leaf.pem.utf8, to: "revoked.pem")
        try folder.write(middle.revocationList(of: [revoked.leaf]).utf8, to: "list.pem")
        let verify = """
            openssl verify -x509_strict -purpose sslserver -CAfile root.pem -untrusted middle.pem \
            -crl_check -CRLfile list.pem
            """
        try await folder.run("\(verify) -verify_hostname localhost good.pem")
        let said = try await folder.run("! \(verify) revoked.pem 2>&1")
        #expect(said.contains("certificate revoked"))
    }

    @Test(
        "names that no name can be, and malformed extensions, are left out",
        arguments: [
            // A dNSName with a zero byte, one beyond ASCII, an empty one, an address of three bytes.
            ("DER:3008:8206612E6200632E", []), ("DER:3006:8204612E62FC", []),
            ("DER:3002:8200", []), ("DER:3005:8703010203", []),
            // No sequence, a sequence that ends early, nothing at all, a name of an unknown kind.
            ("DER:0500:", []), ("DER:3009:8201", []), ("DER::", []), ("DER:3003:9F0161", []),
            // A good one after a bad one.
            ("DER:3008:82018082036103", []), ("DER:3007:820180820261 62", ["ab"]),
        ] as [(String, [String])])
    func malformedNames(value: String, names: [String]) throws {
        let der = value.dropFirst(4).filter { $0 != ":" && $0 != " " }
        let authority = try CertificateAuthority()
        let extensions = [(name: "2.5.29.17", value: "DER:\(der)")]
        guard
            let leaf = try? authority.certificate(
                for: PrivateKey(.ec("P-256")), names: [], extensions: extensions)
        else {
            #expect(der.isEmpty, "OpenSSL makes no extension of nothing")
            return
        }
        #expect(leaf.dnsNames == names)
        #expect(leaf.ipAddresses.isEmpty && leaf.uris.isEmpty && leaf.emailAddresses.isEmpty)
    }

    @Test("no flipped byte of a certificate makes it crash")
    func flipped() throws {
        let der = try CertificateAuthority().identity(names: ["a.example", "::1"]).leaf.der
        for index in der.indices {
            for mask in [0x01, 0x80, 0xFF] as [UInt8] {
                var bytes = der
                bytes[index] ^= mask
                guard let certificate = try? Certificate(der: bytes) else { continue }
                _ = certificate.description + certificate.issuer + certificate.serialNumber
                _ = (certificate.dnsNames, certificate.ipAddresses, certificate.isAuthority)
                _ = (certificate.notBefore, certificate.notAfter, certificate.isSelfSigned)
                #expect(certificate.pin.digest.count == 32)
            }
        }
    }

    @Test("a part of a certificate is refused, and so is what follows one")
    func truncated() throws {
        let certificate = try CertificateAuthority().certificate
        for count in stride(from: 0, to: certificate.der.count, by: 7) {
            #expect(throws: CertificateError.self) {
                try Certificate(der: Array(certificate.der.prefix(count)))
            }
        }
        let error = #expect(throws: CertificateError.self) {
            try Certificate(der: certificate.der + [0])
        }
        #expect("\(error.map(\.description) ?? "")".contains("bytes after the certificate"))
    }

    @Test("a file may be PEM of several with other things between, or DER")
    func files() throws {
        let folder = try TemporaryFolder()
        let one = try CertificateAuthority().identity()
        let two = try CertificateAuthority().certificate
        let mixed = "\u{FEFF}\(one.leaf.pem)a comment\r\n\(one.keyPEM)\(two.pem)"
        try folder.write(mixed.utf8, to: "mixed.pem")
        try folder.write(two.der, to: "two.der")
        try folder.write(one.leaf.pem.replacing("\n", with: "\r\n").utf8, to: "crlf.pem")
        #expect(try Certificate.reading(file: folder.path("mixed.pem")) == [one.leaf, two])
        #expect(try Certificate.reading(file: folder.path("two.der")) == [two])
        #expect(try Certificate.reading(file: folder.path("crlf.pem")) == [one.leaf])
    }

    @Test("an error names the file and the reason")
    func errors() throws {
        let folder = try TemporaryFolder()
        let pem = try CertificateAuthority().certificate.pem
        let key = try PrivateKey(.ec("P-256")).pem
        let rows: [(name: String, bytes: String?, reason: String)] = [
            ("missing.pem", nil, "there is no such file"), ("", nil, "it is a folder"),
            ("empty.pem", "", "is empty"), ("text", "hello", "there is no certificate in it"),
            ("key.pem", key, "there is no certificate in it"),
            ("cut.pem", pem + pem.prefix(200), "certificate 2 is malformed"),
            ("bad.pem", pem.replacing("MII", with: "AII"), "certificate 1 is malformed"),
            (
                "locked.pem",
                pem.replacing(
                    "CERTIFICATE-----\nMII",
                    with: """
                        CERTIFICATE-----
                        Proc-Type: 4,ENCRYPTED
                        DEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF

                        MII
                        """), "certificate 1 is malformed"
            ),
        ]
        for row in rows {
            if let bytes = row.bytes { try folder.write(bytes.utf8, to: row.name) }
            let error = #expect(throws: CertificateError.self) {
                try Certificate.reading(file: folder.path(row.name))
            }
            let text = error?.description ?? ""
            #expect(text.hasPrefix(folder.path(row.name)) && text.contains(row.reason), "\(text)")
        }
        for path in ["", "a\0b"] {
            #expect(throws: CertificateError.self) { try Certificate.reading(file: path) }
        }
        let endless = #expect(throws: CertificateError.self) {
            try Certificate.reading(file: "/dev/zero")
        }
        #expect(endless?.description == "/dev/zero: it is too large")
    }

    @Test("bytes without end are refused like a file without end")
    func tooLarge() throws {
        let bytes = [UInt8](repeating: 0x30, count: 16 << 20 + 1)
        let errors = [
            #expect(throws: CertificateError.self) { try Certificate(der: bytes) },
            #expect(throws: CertificateError.self) { try Certificate.parsing(pem: bytes) },
            #expect(throws: CertificateError.self) { try Identity(pem: bytes) },
            #expect(throws: CertificateError.self) { try Identity(pkcs12: bytes) },
        ]
        for error in errors {
            #expect(error?.description.hasSuffix(": it is too large") == true, "\(error as Any)")
        }
    }
}
