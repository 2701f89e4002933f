internal import CTowpathOpenSSL

/// What a client keeps to take a connection up again (RFC 8446 §2.2). A ticket of TLS 1.3 is for one
/// connection, or an observer could tell that two are of the same client.
package final class TLSSession: @unchecked Sendable {
    // Counted atomically by OpenSSL, and not changed once it is here.
    let pointer: OpaquePointer

    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    deinit { SSL_SESSION_free(pointer) }

    package var isSingleUse: Bool {
        SSL_SESSION_get_protocol_version(pointer) >= TLSVersion.tls13.rawValue
    }
}
