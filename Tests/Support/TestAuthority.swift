import CTowpathOpenSSL
package import TowpathTLS

/// A certificate authority of one test: what it issues can be as wrong as the test needs.
package final class TestAuthority {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// How a certificate is to be.
    package struct Request {
        /// The common name.
        package var name: String
        /// Alternative names as OpenSSL's configuration has them: `DNS:localhost`, `IP:127.0.0.1`.
        package var alternativeNames: [String] = []
        package var usage: String? = "serverAuth,clientAuth"
        package var isAuthority = false
        package var pathLength: Int?
        /// Seconds from now.
        package var validity: ClosedRange<Int> = -3_600...86_400
        /// `EC`, `RSA-2048` or `ED25519`.
        package var keyKind = "EC"
        /// More extensions, by OpenSSL's number and value.
        package var extensions: [(Int32, String)] = []

        package init(_ name: String, _ alternativeNames: [String] = []) {
            self.name = name
            self.alternativeNames = alternativeNames
        }
    }

    private let pointer: OpaquePointer
    private let key: OpaquePointer
    private let parent: TestAuthority?
    package let certificate: Certificate

    /// A root, or an authority below another.
    package convenience init(_ name: String = "Test Root", by parent: TestAuthority? = nil) throws {
        var request = Request(name)
        request.isAuthority = true
        request.usage = nil
        try self.init(request, by: parent)
    }

    /// Any certificate, signed by an authority or by itself.
    package init(
        _ request: Request, by parent: TestAuthority? = nil, reusing other: TestAuthority? = nil
    ) throws {
        self.parent = parent
        if let other {
            EVP_PKEY_up_ref(other.key)
            key = other.key
        } else {
            key = try Self.makeKey(request.keyKind)
        }
        guard let pointer = X509_new() else { throw Failure(description: "X509_new") }
        self.pointer = pointer
        certificate = try Self.fill(pointer, key, request, parent)
    }

    deinit {
        X509_free(pointer)
        EVP_PKEY_free(key)
    }

    private static func makeKey(_ kind: String) throws -> OpaquePointer {
        let words = kind.split(separator: "-").map(String.init)
        let bits = words.count > 1 ? UInt32(words[1]) ?? 2_048 : 0
        let made = ossl_make_key(words[0], bits)
        guard let made else { throw Failure(description: "no key \(kind)") }
        return made
    }

    private static func fill(
        _ pointer: OpaquePointer, _ key: OpaquePointer, _ request: Request,
        _ parent: TestAuthority?
    ) throws -> Certificate {
        let issuer = parent?.pointer ?? pointer
        guard let subject = X509_get_subject_name(pointer),
            X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, request.name, -1, -1, 0) == 1,
            X509_set_version(pointer, 2) == 1, ossl_make_serial(pointer) == 1,
            X509_set_issuer_name(pointer, X509_get_subject_name(issuer)) == 1,
            ossl_make_validity(pointer, request.validity.lowerBound, request.validity.upperBound)
                == 1,
            X509_set_pubkey(pointer, key) == 1
        else { throw Failure(description: "no certificate \(request.name)") }
        var extensions = [(NID_subject_key_identifier, "hash")]
        if parent != nil { extensions.append((NID_authority_key_identifier, "keyid")) }
        let length = request.pathLength.map { ",pathlen:\($0)" } ?? ""
        extensions.append(
            (
                NID_basic_constraints,
                "critical,CA:\(request.isAuthority ? "TRUE" : "FALSE")\(length)"
            ))
        if request.isAuthority {
            extensions.append((NID_key_usage, "critical,keyCertSign,cRLSign"))
        }
        if let usage = request.usage { extensions.append((NID_ext_key_usage, usage)) }
        if !request.alternativeNames.isEmpty {
            extensions.append(
                (NID_subject_alt_name, request.alternativeNames.joined(separator: ",")))
        }
        for (number, value) in extensions + request.extensions {
            guard ossl_make_extension(pointer, issuer, number, value) == 1 else {
                throw Failure(description: "no extension \(value)")
            }
        }
        let signer = parent?.key ?? key
        let digest = EVP_PKEY_get_id(signer) == EVP_PKEY_ED25519 ? nil : EVP_sha256()
        guard X509_sign(pointer, signer, digest) > 0 else {
            throw Failure(description: "not signed: \(request.name)")
        }
        return Certificate(referencing: pointer)
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
        let certificates = [certificate] + (chain ?? authorities)
        return try Identity(der: certificates.map(\.der), keyDER: keyDER())
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

    package func keyDER() -> [UInt8] {
        let size = Int(i2d_PrivateKey(key, nil))
        return [UInt8](unsafeUninitializedCapacity: max(0, size)) { buffer, count in
            var next = buffer.baseAddress
            count = max(0, Int(i2d_PrivateKey(key, &next)))
        }
    }
}
