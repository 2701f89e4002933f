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

    /// Fewer bytes where the file is shorter.
    package func read(from offset: Int, count: Int) throws(SystemError) -> [UInt8] {
        var result = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            result = shim_pread(number, buffer.baseAddress, count, off_t(offset))
            filled = max(0, result)
        }
        try check(result, "pread")
        return bytes
    }
}
