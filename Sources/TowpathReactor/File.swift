internal import CTowpathLinux

/// Regular files, for sending. Opening and reading may block: only on the blocking pool.
extension Descriptor {
    /// Opens a regular file for reading; anything else fails with EINVAL, since it could block forever.
    package static func openFile(_ path: String) throws(SystemError) -> Descriptor {
        let file = Descriptor(owning: Int32(try check(shim_open_read(path), "open")))
        guard shim_is_regular(file.number) != 0 else { throw SystemError(EINVAL, "open") }
        return file
    }

    package func fileSize() throws(SystemError) -> Int {
        try check(shim_file_size(number), "fstat")
    }
}
