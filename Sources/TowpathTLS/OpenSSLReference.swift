internal import CTowpathOpenSSL

/// A counted reference to an object of OpenSSL, given back with the last Swift one.
///
/// `@unchecked`: nobody changes the object after init, and what OpenSSL caches in it, OpenSSL locks.
final class OpenSSLReference: @unchecked Sendable {
    let pointer: OpaquePointer
    private let free: @Sendable (OpaquePointer?) -> Void

    /// Takes over a reference.
    init(_ pointer: OpaquePointer, free: @escaping @Sendable (OpaquePointer?) -> Void) {
        self.pointer = pointer
        self.free = free
    }

    deinit { free(pointer) }
}

/// Bytes that OpenSSL reads or writes. They may be a key: OpenSSL wipes them when they go.
package final class OpenSSLMemory {
    let bio: OpaquePointer

    init() throws(CertificateError) {
        guard let bio = ossl_memory_new() else { throw .noMemory }
        self.bio = bio
    }

    deinit { BIO_free(bio) }

    /// Takes bytes that an error calls by the name.
    convenience init(_ bytes: [UInt8], from source: String) throws(CertificateError) {
        guard bytes.count <= Self.maximumCount else {
            throw CertificateError("\(source): it is too large")
        }
        try self.init()
        var count = 0
        guard bytes.isEmpty || BIO_write_ex(bio, bytes, bytes.count, &count) == 1 else {
            throw .noMemory
        }
    }

    /// Reads a file, or what a pipe has until its end.
    convenience init(file path: String) throws(CertificateError) {
        try self.init()
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw CertificateError("\(quoted(path)): this is not the path of a file")
        }
        let error = ossl_read_file(path, bio, Self.maximumCount)
        guard error != 0 else { return }
        let reason = ossl_file_problem(error).map { String(cString: $0) }
        throw CertificateError("\(path): \(reason ?? "it cannot be read (errno \(error))")")
    }

    /// Certificates of every authority there is come to a quarter of a megabyte.
    private static let maximumCount = 16 << 20

    var isEmpty: Bool { ossl_memory_count(bio) == 0 }

    var isPEM: Bool { ossl_is_pem(bio) == 1 }

    /// What a function of OpenSSL writes; nil if it fails.
    package static func bytes(_ write: (OpaquePointer) -> Int32) -> [UInt8]? {
        guard let memory = try? OpenSSLMemory() else { return nil }
        ERR_clear_error()
        guard write(memory.bio) > 0 else {
            ERR_clear_error()
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: ossl_memory_count(memory.bio))
        var count = 0
        guard bytes.isEmpty || BIO_read_ex(memory.bio, &bytes, bytes.count, &count) == 1 else {
            return nil
        }
        return bytes
    }

    /// The text that a function of OpenSSL writes; empty if it fails.
    package static func text(_ write: (OpaquePointer) -> Int32) -> String {
        String(decoding: bytes(write) ?? [], as: UTF8.self)
    }
}

extension CertificateError {
    /// With the reasons that OpenSSL gave, which its queue then no longer has.
    static func withReasons(_ description: String) -> CertificateError {
        let reasons = takenReasons()
        return CertificateError(reasons.isEmpty ? description : "\(description) (\(reasons))")
    }

    static func takenReasons() -> String { TLSError.takeErrors().reasons }

    static var noMemory: CertificateError { CertificateError("OpenSSL has no memory left") }
}

/// A text within a message: shortened, and without what could steer a terminal.
func quoted(_ text: some StringProtocol) -> String {
    let shown = text.unicodeScalars.prefix(60)
    let isWhole = shown.endIndex == text.unicodeScalars.endIndex
    let safe = shown.map { scalar in
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: scalar.escaped(asASCII: true)
        default: String(scalar)
        }
    }
    return "\"\(safe.joined())\(isWhole ? "" : "…")\""
}
