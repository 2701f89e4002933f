package import TowpathTLS

/// A certificate authority of one test, or anything else that signs: what it issues can be as wrong as the
/// test needs. Where no wrong is needed, ``CertificateAuthority`` does.
package final class TestAuthority {
    /// When a certificate is valid, without a clock.
    package enum Validity {
        case now, past, future

        var times: (Int64, Int64) {
            switch self {
            case .now: (CertificateAuthority.notBefore, CertificateAuthority.notAfter)
            case .past: (CertificateAuthority.notBefore, CertificateAuthority.notBefore + 86_400)
            case .future: (CertificateAuthority.notAfter - 86_400, CertificateAuthority.notAfter)
            }
        }
    }

    /// How a certificate is to be.
    package struct Request {
        /// The common name.
        package var name: String
        /// Alternative names as OpenSSL's configuration has them: `DNS:localhost`, `IP:127.0.0.1`.
        package var alternativeNames: [String] = []
        package var usage: String? = "serverAuth,clientAuth"
        package var isAuthority = false
        package var validity = Validity.now
        package var key = PrivateKey.Kind.ec("P-256")

        package init(_ name: String, _ alternativeNames: [String] = []) {
            self.name = name
            self.alternativeNames = alternativeNames
        }
    }

    private let key: PrivateKey
    private let parent: TestAuthority?
    package let certificate: Certificate

    /// A root, or an authority below another.
    package convenience init(_ name: String = "Test Root", by parent: TestAuthority? = nil) throws {
        var request = Request(name)
        request.isAuthority = true
        request.usage = nil
        try self.init(request, by: parent)
    }

    /// Any certificate, signed by an authority or by itself, of a key of its own or another's.
    package init(
        _ request: Request, by parent: TestAuthority? = nil, reusing other: TestAuthority? = nil
    ) throws {
        self.parent = parent
        key = try other?.key ?? PrivateKey(request.key)
        let (notBefore, notAfter) = request.validity.times
        var template = CertificateTemplate(
            commonName: request.name, notBefore: notBefore, notAfter: notAfter)
        template.extensions = [
            ("subjectKeyIdentifier", "hash"),
            ("basicConstraints", "critical,CA:\(request.isAuthority ? "TRUE" : "FALSE")"),
        ]
        if parent != nil { template.extensions.append(("authorityKeyIdentifier", "keyid")) }
        if request.isAuthority {
            template.extensions.append(("keyUsage", "critical,keyCertSign,cRLSign"))
        }
        if let usage = request.usage { template.extensions.append(("extendedKeyUsage", usage)) }
        if !request.alternativeNames.isEmpty {
            template.extensions.append(
                ("subjectAltName", request.alternativeNames.joined(separator: ",")))
        }
        certificate = try template.issued(
            for: key, by: parent.map { ($0.certificate, $0.key) })
    }

    /// An identity with the chain up to, but without, the root.
    package func issue(_ request: Request) throws -> Identity {
        try TestAuthority(request, by: self).identity()
    }

    package func issue(_ names: String...) throws -> Identity {
        try issue(Request("leaf", names))
    }

    /// This certificate with its key and chain, as a server shows it.
    package func identity(chain: [Certificate]? = nil) throws -> Identity {
        try Identity(certificates: [certificate] + (chain ?? authorities), key: key)
    }

    /// The authorities between this one and the root.
    private var authorities: [Certificate] {
        var list: [Certificate] = []
        var next = parent
        while let authority = next, authority.parent != nil {
            list.append(authority.certificate)
            next = authority.parent
        }
        return list
    }
}
