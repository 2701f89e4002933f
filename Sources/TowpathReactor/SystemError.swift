internal import CTowpathLinux

/// A system call that failed: which one, and why.
package struct SystemError: Error, Equatable, CustomStringConvertible {
    package let code: Int32
    package let call: String

    package init(_ code: Int32, _ call: String) {
        self.code = code
        self.call = call
    }

    package var reason: String { String(cString: strerror(code)) }

    package var description: String { "\(call): \(reason) (errno \(code))" }

    /// The errno values that mean something to a user, sorted: the one table.
    package enum Kind: Sendable {
        case refused, reset, timedOut, unreachable, addressInUse, addressUnavailable, notPermitted
        case noDescriptors, noMemory, messageTooLong, noSuchFile, other
    }

    package var kind: Kind {
        switch code {
        case ECONNREFUSED: .refused
        case ECONNRESET, EPIPE, ECONNABORTED, ENOTCONN: .reset
        case ETIMEDOUT: .timedOut
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, ENODEV, ENONET: .unreachable
        case EADDRINUSE: .addressInUse
        case EADDRNOTAVAIL: .addressUnavailable
        case EACCES, EPERM: .notPermitted
        case EMFILE, ENFILE: .noDescriptors
        case ENOBUFS, ENOMEM, EAGAIN: .noMemory
        case EMSGSIZE: .messageTooLong
        case ENOENT: .noSuchFile
        default: .other
        }
    }

    package static let refused = ECONNREFUSED
    package static let badMessage = EBADMSG
    package static let noBuffers = ENOBUFS
    package static let wrongFamily = EAFNOSUPPORT
    package static let wrongType = EPROTOTYPE
}

/// The one place where a shim's result (a count, or minus the errno) becomes a thrown error.
@discardableResult
func check(_ result: Int, _ call: String) throws(SystemError) -> Int {
    if result < 0 { throw SystemError(Int32(-result), call) }
    return result
}

/// What a non-blocking call did. Would-block is a result, not an error.
package enum Transfer: Equatable, Sendable {
    case done(Int)
    case wouldBlock
    case failed(Int32)

    init(_ result: Int) {
        if result >= 0 {
            self = .done(result)
        } else if result == -Int(EAGAIN) {
            self = .wouldBlock
        } else {
            self = .failed(Int32(-result))
        }
    }
}
