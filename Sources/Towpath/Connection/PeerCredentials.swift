internal import TowpathReactor

/// Who made the other end of a Unix connection, as the kernel knows it: SO_PEERCRED of unix(7).
public struct PeerCredentials: Hashable, Sendable {
    /// The process; it may have ended since.
    public let processID: Int32
    /// The effective user and group at the time of connect(2) or listen(2).
    public let userID: UInt32, groupID: UInt32
}

extension Connection {
    /// Who made the other end of a Unix connection.
    ///
    /// Throws ``NetworkError/Code/notSupported`` for other transports and
    /// ``NetworkError/Code/closed`` where there is no socket.
    public func peerCredentials() throws(NetworkError) -> PeerCredentials {
        let core = try liveCore()
        let credentials = try core.onSocket(.setup) { socket throws(SystemError) in
            guard try socket.localAddress().family == .unix else {
                return nil as (pid: Int32, uid: UInt32, gid: UInt32)?
            }
            return try socket.peerCredentials()
        }
        guard let credentials else {
            throw NetworkError(.notSupported, .setup, "only Unix sockets know their peer's owner")
        }
        return PeerCredentials(
            processID: credentials.pid, userID: credentials.uid, groupID: credentials.gid)
    }
}
