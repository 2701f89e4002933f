internal import CTowpathLinux

/// What hears of a descriptor's readiness and of its own deadlines, always on its loop's thread.
package protocol EventHandler: AnyObject, Sendable {
    func handle(_ events: ReadyEvents)
    func deadlineReached(_ tag: UInt8)
}

/// What epoll said of a descriptor: bits of epoll_ctl(2).
package struct ReadyEvents: OptionSet, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let input = ReadyEvents(rawValue: SHIM_EPOLLIN)
    package static let output = ReadyEvents(rawValue: SHIM_EPOLLOUT)
    /// The peer has finished sending; there may still be bytes to read.
    package static let inputEnd = ReadyEvents(rawValue: SHIM_EPOLLRDHUP)
    package static let hangUp = ReadyEvents(rawValue: SHIM_EPOLLHUP)
    package static let error = ReadyEvents(rawValue: SHIM_EPOLLERR)
    /// TCP urgent data: a read stops short at its mark.
    package static let urgent = ReadyEvents(rawValue: SHIM_EPOLLPRI)

    /// Something to read: bytes, an end or an error.
    package var isReadable: Bool { !isDisjoint(with: [.input, .inputEnd, .hangUp, .error]) }
    package var isWritable: Bool { !isDisjoint(with: [.output, .hangUp, .error]) }
    /// An end, an error or an urgent mark lies among the bytes: a short read does not mean that the
    /// socket is empty.
    package var marksInput: Bool { !isDisjoint(with: [.inputEnd, .hangUp, .error, .urgent]) }
}
