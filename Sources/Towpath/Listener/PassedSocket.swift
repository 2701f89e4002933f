internal import TowpathReactor

/// A socket that the service manager opened and passed to this process: systemd's socket activation,
/// sd_listen_fds(3).
public struct PassedSocket: Sendable {
    /// The name in the socket unit (`FileDescriptorName=`); `unknown` if it has none.
    public let name: String
    /// The descriptor, for ``Listener/init(adopting:parameters:_:)``, which takes it over.
    public let descriptor: Int32

    /// The sockets that were passed to this process, in the unit's order; none if it was started
    /// otherwise. They are closed in programs that this one starts.
    ///
    /// Throws ``NetworkError/Code/invalidEndpoint`` if the environment (`LISTEN_PID`, `LISTEN_FDS`,
    /// `LISTEN_FDNAMES`) makes no sense. Each call returns the same: take each socket over once.
    public static func all() throws(NetworkError) -> [PassedSocket] {
        let sockets = try parse(
            count: Environment.value("LISTEN_FDS"), process: Environment.value("LISTEN_PID"),
            names: Environment.value("LISTEN_FDNAMES"), ownProcess: Environment.processID)
        for socket in sockets { Descriptor.closeInPrograms(socket.descriptor) }
        return sockets
    }

    package static func parse(
        count: String?, process: String?, names: String?, ownProcess: Int32
    ) throws(NetworkError) -> [PassedSocket] {
        guard let count, let process else { return [] }
        guard let process = Int32(process), let count = Int(count), (0...65_536).contains(count)
        else {
            throw NetworkError(
                .invalidEndpoint, .setup,
                "LISTEN_PID \"\(process)\" and LISTEN_FDS \"\(count)\" must be numbers")
        }
        // They were meant for a parent.
        guard process == ownProcess else { return [] }
        let names = names?.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        if let names, names.count != count {
            throw NetworkError(
                .invalidEndpoint, .setup,
                "LISTEN_FDNAMES has \(names.count) names for \(count) sockets")
        }
        return (0..<count).map { index in
            // SD_LISTEN_FDS_START is 3.
            PassedSocket(name: names?[index] ?? "unknown", descriptor: Int32(3 + index))
        }
    }
}
