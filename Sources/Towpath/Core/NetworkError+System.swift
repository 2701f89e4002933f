internal import TowpathReactor

/// Errno values as Towpath's codes: the one table.
extension NetworkError {
    init(_ error: SystemError, _ stage: Stage, _ subject: String) {
        let (code, advice) = Self.classify(error)
        self.init(
            code, stage, advice.isEmpty ? subject : "\(subject): \(advice)",
            cause: .system(errno: error.code, call: error.call))
    }

    init(_ error: Resolver.Failure) {
        self.init(
            error.isTemporary ? .resolverUnavailable : .nameNotFound, .resolve,
            error.isTemporary
                ? "\(error.message); check the name servers of this host"
                : "\(error.message); check the spelling",
            cause: error.system == 0
                ? .resolver(code: error.code) : .system(errno: error.system, call: "getaddrinfo"))
    }

    private static func classify(_ error: SystemError) -> (Code, String) {
        switch error.kind {
        case .refused: (.connectionRefused, "refused: nobody listens there")
        case .reset: (.connectionReset, "the peer ended the connection abruptly")
        case .timedOut: (.timedOut, "no answer in time")
        case .unreachable:
            (.unreachable, "no route leads there, or the interface is down or gone")
        case .addressInUse: (.addressUnavailable, "the address is in use")
        case .addressUnavailable:
            (.addressUnavailable, "no interface has this address, or no port is free")
        case .notPermitted: (.permissionDenied, "not permitted")
        case .noDescriptors:
            (.resourcesExhausted, "no descriptors are left: raise RLIMIT_NOFILE")
        case .noMemory: (.resourcesExhausted, "the kernel has no memory or threads left")
        case .messageTooLong: (.messageTooLong, "larger than the socket or the path can take")
        case .noSuchFile:
            (.unreachable, "there is no such file, or a folder of its path is missing")
        case .other: (.systemFailure, error.reason)
        }
    }

    static func closed(_ stage: Stage) -> NetworkError {
        NetworkError(.closed, stage, "the connection was closed on this side")
    }

    static func timedOut(_ stage: Stage, _ subject: String) -> NetworkError {
        NetworkError(.timedOut, stage, subject)
    }

    static let receiveInProgress = NetworkError(
        .receiveInProgress, .receive,
        "another receive of this connection is waiting; receive from one task at a time")

    static let outputFinished = NetworkError(
        .outputFinished, .send, "nothing can be sent after finish() or close()")
}
