internal import CTowpathLinux

/// Buffers of the thread, each made when the thread first uses it.
///
/// A buffer per connection would cost each idle one a page; a buffer per loop could not serve
/// callers on other threads. Valid until the thread ends; the caller must not suspend while it uses one.
package enum Scratch {
    package static let byteCount = 65_536

    /// What a caller gets.
    package static var buffer: UnsafeMutableRawPointer { pointer(key, byteCount) }

    /// Ciphertext that came.
    package static var incoming: UnsafeMutableRawBufferPointer {
        .init(start: pointer(incomingKey, cipherCount), count: cipherCount)
    }

    /// Ciphertext that goes.
    package static var outgoing: UnsafeMutableRawBufferPointer {
        .init(start: pointer(outgoingKey, cipherCount), count: cipherCount)
    }

    /// The largest record of TLS, but for padding: what ciphers add is 22 to 29 bytes.
    package static let recordCount = 16_384 + 32
    /// What fills the caller's buffer.
    private static let cipherCount = 4 * recordCount

    private static func pointer(_ key: pthread_key_t, _ count: Int) -> UnsafeMutableRawPointer {
        if let buffer = pthread_getspecific(key) { return buffer }
        let buffer = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 64)
        pthread_setspecific(key, buffer)
        return buffer
    }

    private static let key = makeKey()
    private static let incomingKey = makeKey()
    private static let outgoingKey = makeKey()

    private static func makeKey() -> pthread_key_t {
        var key = pthread_key_t()
        pthread_key_create(&key) { $0?.deallocate() }
        return key
    }
}
