import TestSupport
import Testing
import TowpathTLS

@Suite("Identities", .enabled(if: Program.has("openssl")))
struct IdentityTests {
    /// What makes `key.pem`, and the certificate `chain.pem` with an authority's after it.
    private static func folder(_ key: String = "ecparam -name prime256v1 -genkey") async throws
        -> TemporaryFolder
    {
        let folder = try TemporaryFolder()
        try await folder.run(
            """
            openssl \(key) -out key.pem && openssl req -x509 -key key.pem -subj /CN=a -out leaf.pem \
            && openssl req -x509 -newkey ed25519 -nodes -keyout other.pem -subj /CN=b -out b.pem && \
            cat leaf.pem b.pem >chain.pem
            """)
        return folder
    }

    @Test(
        "every form of a private key is read, in PEM and DER, with its password and without",
        arguments: [
            ("ecparam -name prime256v1 -genkey", nil, "cat key.pem"),
            ("ecparam -name prime256v1 -genkey", nil, "openssl ec -in key.pem -outform der"),
            ("genpkey -algorithm rsa", nil, "openssl rsa -in key.pem -traditional"),
            ("genpkey -algorithm rsa", nil, "openssl rsa -in key.pem -traditional -outform der"),
            ("genpkey -algorithm rsa", nil, "openssl pkcs8 -topk8 -nocrypt -in key.pem"),
            (
                "genpkey -algorithm rsa", nil,
                "openssl pkcs8 -topk8 -nocrypt -in key.pem -outform der"
            ),
            (
                "genpkey -algorithm rsa", "pä55",
                "openssl pkcs8 -topk8 -in key.pem -passout pass:pä55"
            ),
            (
                "genpkey -algorithm rsa", "pä55",
                "openssl pkcs8 -topk8 -in key.pem -passout pass:pä55 -outform der"
            ),
            (
                "genpkey -algorithm rsa", "pä55",
                "openssl rsa -in key.pem -aes256 -traditional -passout pass:pä55"
            ),
            (
                "ecparam -name secp384r1 -genkey", "pä55",
                "openssl ec -in key.pem -aes128 -passout pass:pä55"
            ),
            ("genpkey -algorithm ed25519", nil, "cat key.pem"),
            ("genpkey -algorithm rsa-pss", nil, "openssl pkcs8 -topk8 -nocrypt -in key.pem"),
        ] as [(String, String?, String)])
    func forms(key: String, password: String?, conversion: String) async throws {
        let folder = try await Self.folder(key)
        try await folder.run("\(conversion) >k")
        let identity = try Identity(
            certificateFile: folder.path("chain.pem"), keyFile: folder.path("k"),
            password: password)
        #expect(identity.certificates == (try Certificate.reading(file: folder.path("chain.pem"))))
        #expect(identity.pin == identity.certificates.first?.pin)
        let bytes = try folder.bytes(of: "k")
        let leaf = identity.leaf
        #expect(try Identity(pem: leaf.der, keyPEM: bytes, password: password).leaf == leaf)
        if bytes.first == 0x30 {
            let both = try Identity(
                der: identity.certificates.map(\.der), keyDER: bytes, password: password)
            #expect(both == identity && both.hashValue == identity.hashValue)
        } else {
            try await folder.run("cat chain.pem k >one.pem")
            let one = try Identity(certificateFile: folder.path("one.pem"), password: password)
            #expect(one == identity)
        }
        guard password != nil else { return }
        for (wrong, reason) in [("no", "password of the private key is wrong"), (nil, "encrypted")]
        {
            let error = #expect(throws: CertificateError.self) {
                try Identity(
                    certificateFile: folder.path("chain.pem"), keyFile: folder.path("k"),
                    password: wrong)
            }
            let text = error?.description ?? ""
            #expect(text.hasPrefix(folder.path("k")) && text.contains(reason), "\(text)")
        }
    }

    @Test("a PKCS #12 file gives the chain in its order, with the right password only")
    func pkcs12() async throws {
        let folder = try TemporaryFolder()
        let root = try CertificateAuthority()
        let middle = try root.intermediate()
        let below = try middle.intermediate("another")
        let issued = try below.identity()
        let others = [root.certificate, below.certificate, middle.certificate]
        try folder.write(issued.leaf.pem.utf8, to: "leaf.pem")
        try folder.write(issued.keyPEM.utf8, to: "key.pem")
        try folder.write(others.map(\.pem).joined().utf8, to: "others.pem")
        let export = "openssl pkcs12 -export -in leaf.pem -inkey key.pem -certfile others.pem"
        try await folder.run(
            """
            \(export) -passout pass:pä55 -out a.p12 && \(export) -passout pass: -out empty.p12 && \
            openssl pkcs12 -export -nokeys -in leaf.pem -passout pass: -out nokey.p12
            """)
        let identity = try Identity(pkcs12File: folder.path("a.p12"), password: "pä55")
        #expect(
            identity.certificates == [
                issued.leaf, below.certificate, middle.certificate, root.certificate,
            ])
        #expect(identity.keyPEM == issued.keyPEM)
        #expect(try Identity(pkcs12: folder.bytes(of: "a.p12"), password: "pä55") == identity)
        #expect(try Identity(pkcs12File: folder.path("empty.p12")) == identity)
        #expect(try Identity(pkcs12File: folder.path("empty.p12"), password: "") == identity)
        try folder.write([], to: "nothing.p12")
        let rows: [(String, String?, String)] = [
            ("a.p12", "no", "is wrong"), ("a.p12", nil, "no password was given"),
            ("nokey.p12", nil, "there is no private key with a certificate"),
            ("leaf.pem", nil, "is malformed"), ("nothing.p12", nil, "is empty"),
            ("missing.p12", nil, "there is no such file"),
        ]
        for (name, password, reason) in rows {
            let error = #expect(throws: CertificateError.self) {
                try Identity(pkcs12File: folder.path(name), password: password)
            }
            let text = error?.description ?? ""
            #expect(text.hasPrefix(folder.path(name)) && text.contains(reason), "\(text)")
        }
    }

    @Test("a PKCS #12 file with ciphers of old says that the password is not what is wrong")
    func oldCiphers() async throws {
        let folder = try await Self.folder()
        let end = try await Program(
            shell: """
                cd '\(folder.path)' && openssl pkcs12 -export -legacy -in leaf.pem -inkey key.pem \
                -passout pass:a -out a.p12
                """
        ).end()
        guard end.status == 0 else { return skip("old ciphers: there is no legacy provider") }
        let error = #expect(throws: CertificateError.self) {
            try Identity(pkcs12File: folder.path("a.p12"), password: "a")
        }
        #expect(error?.description.contains("encrypt it anew") ?? false, "\("\(error as Any)")")
    }

    @Test("an error names the file and the reason")
    func errors() async throws {
        let folder = try await Self.folder()
        try folder.write([], to: "empty")
        let openSSH = """
            -----BEGIN OPENSSH PRIVATE KEY-----
            b3BlbnNzaC1rZXktdjEAAAAA
            -----END OPENSSH PRIVATE KEY-----

            """
        try folder.write(openSSH.utf8, to: "ssh")
        try folder.write(Array("0malformed".utf8), to: "text")
        try await folder.run(
            "head -c 150 key.pem >cut; cat b.pem leaf.pem >reversed.pem; grep -v '^M' key.pem >hollow"
        )
        let rows: [(chain: String, key: String?, named: String, reason: String)] = [
            ("missing", "key.pem", "missing", "there is no such file"),
            ("leaf.pem", "missing", "missing", "there is no such file"),
            ("empty", "key.pem", "empty", "is empty"), ("leaf.pem", "empty", "empty", "is empty"),
            ("leaf.pem", nil, "leaf.pem", "there is no private key in it"),
            ("leaf.pem", "leaf.pem", "leaf.pem", "there is no private key in it"),
            ("key.pem", "key.pem", "key.pem", "there is no certificate in it"),
            ("leaf.pem", "other.pem", "other.pem", "does not belong to the first certificate"),
            ("reversed.pem", "key.pem", "key.pem", "but to number 2"),
            ("leaf.pem", "ssh", "ssh", "ssh-keygen"), ("leaf.pem", "text", "text", "malformed"),
            ("leaf.pem", "cut", "cut", "malformed"), ("leaf.pem", "hollow", "hollow", "malformed"),
        ]
        for row in rows {
            let error = #expect(throws: CertificateError.self) {
                try Identity(
                    certificateFile: folder.path(row.chain), keyFile: row.key.map(folder.path))
            }
            let text = error?.description ?? ""
            #expect(text.hasPrefix(folder.path(row.named)) && text.contains(row.reason), "\(text)")
        }
    }

    @Test("a self-signed identity is for its names, verifies, and differs each time")
    func selfSigned() async throws {
        let names = ["localhost", "*.Test.example", "127.0.0.1", "::1"]
        let identity = try Identity.selfSigned(names: names, validFor: 7)
        let leaf = identity.leaf
        #expect(leaf.subject == "CN=localhost")
        #expect(leaf.dnsNames == ["localhost", "*.test.example"])
        #expect(
            leaf.ipAddresses == [[127, 0, 0, 1], [UInt8](repeating: 0, count: 15) + [1]])
        #expect(leaf.isSelfSigned && !leaf.isAuthority && leaf.keyDescription == "EC P-256")
        #expect(leaf.notAfter - leaf.notBefore == 7 * 86_400 + 3_600)
        #expect(leaf.serialNumber.count == 32)
        #expect("\(identity)" == "CN=localhost (EC P-256)")
        let other = try Identity.selfSigned()
        #expect(other != identity && other.pin != identity.pin)
        #expect(other.leaf.serialNumber != leaf.serialNumber)
        let folder = try TemporaryFolder()
        try folder.write(leaf.pem.utf8, to: "leaf.pem")
        for check in ["-verify_hostname localhost", "-verify_ip ::1"] {
            try await folder.run(
                "openssl verify -purpose sslserver \(check) -CAfile leaf.pem leaf.pem")
        }
        let text = identity.chainPEM + identity.keyPEM
        #expect(try Identity(pem: text) == identity)
    }

    @Test("a self-signed identity of a long name has no subject")
    func longName() throws {
        let name = Array(repeating: "label", count: 20).joined(separator: ".")
        let leaf = try Identity.selfSigned(names: [name]).leaf
        #expect(leaf.subject.isEmpty && leaf.dnsNames == [name])
    }

    @Test(
        "names that no certificate can have are refused",
        arguments: [
            [], [""], ["a,DNS:b"], ["bücher.example"], ["**.a.example"], ["a b"], ["1.2.3"],
        ])
    func badNames(names: [String]) {
        #expect(throws: CertificateError.self) { try Identity.selfSigned(names: names) }
    }

    @Test("a time that is none is refused", arguments: [0, -1, 40_000])
    func badTimes(days: Int) {
        #expect(throws: CertificateError.self) { try Identity.selfSigned(validFor: days) }
    }
}
