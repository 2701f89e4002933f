internal import CTowpathLinux

/// The file of a listening Unix socket: a stale one is replaced, a live one is not, and it is removed
/// with the listener, unless it is another's by then.
package final class UnixSocketFile: Sendable {
    private let path: String
    private let identity: FileIdentity
    private let isRemoved = Locked(false)

    /// Binds the socket to the path. `mode` holds from the beginning, so that nobody slips in before.
    package init(
        binding socket: borrowing Descriptor, to address: SocketAddress, path: String, mode: UInt32?
    ) throws(SystemError) {
        if let mode { try check(shim_fchmod(socket.number, mode), "fchmod") }
        do throws(SystemError) { try socket.bind(to: address) } catch {
            guard error.code == EADDRINUSE, Self.isStale(address, path) else { throw error }
            try check(shim_unlink(path), "unlink")
            try socket.bind(to: address)
        }
        // bind(2) took the umask off.
        if let mode { try check(shim_chmod(path, mode), "chmod") }
        guard let identity = FileIdentity(path) else { throw SystemError(ENOENT, "lstat") }
        self.path = path
        self.identity = identity
    }

    /// A socket file to which nobody listens. Anything else is not ours to remove.
    private static func isStale(_ address: SocketAddress, _ path: String) -> Bool {
        guard FileIdentity(path)?.isSocket == true,
            let probe = try? Descriptor.socket(.unix, .stream)
        else { return false }
        return probe.connect(to: address) == .failed(ECONNREFUSED)
    }

    package func remove() {
        let isFirst = isRemoved.withLock { isRemoved in
            defer { isRemoved = true }
            return !isRemoved
        }
        if isFirst, FileIdentity(path) == identity { _ = shim_unlink(path) }
    }
}
