internal import CTowpathLinux

/// One 64 KiB read buffer per thread, made when the thread first reads.
///
/// A buffer per connection would cost each idle one a page; a buffer per loop could not serve
/// callers on other threads.
package enum Scratch {
    package static let byteCount = 65_536

    /// Valid until the thread ends; the caller must not suspend while it uses it.
    package static var buffer: UnsafeMutableRawPointer {
        if let buffer = pthread_getspecific(key) { return buffer }
        let buffer = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 64)
        pthread_setspecific(key, buffer)
        return buffer
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key) { $0?.deallocate() }
        return key
    }()
}
