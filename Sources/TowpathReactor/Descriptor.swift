internal import CTowpathLinux

/// A file descriptor with one owner, non-blocking and close-on-exec from birth, closed once when
/// its owner lets go. Deregister it from its loop first (BR-005).
package struct Descriptor: ~Copyable, Sendable {
    package let number: Int32

    /// Takes ownership of an open descriptor.
    package init(owning number: Int32) {
        self.number = number
    }

    /// Takes ownership of a descriptor that someone else made, and makes it non-blocking and
    /// close-on-exec. On failure the descriptor stays the caller's, open.
    package init(adopting number: Int32) throws(SystemError) {
        try check(shim_set_nonblocking_cloexec(number), "fcntl")
        self.number = number
    }

    deinit {
        _ = shim_close(number)
    }

    /// Keeps a descriptor of somebody else's from the programs that this process starts (FD_CLOEXEC).
    package static func closeInPrograms(_ number: Int32) { _ = shim_set_cloexec(number) }

    /// A second descriptor for the same open file.
    package func duplicate() throws(SystemError) -> Descriptor {
        Descriptor(owning: Int32(try check(shim_dup(number), "fcntl(F_DUPFD_CLOEXEC)")))
    }

    /// Gives the number away; the new owner closes it.
    package consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }
}
