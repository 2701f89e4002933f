internal import TowpathReactor

/// Applies options to a socket that is not bound or connected yet.
struct SocketSetup {
    let parameters: Parameters

    /// What every socket gets.
    func apply(_ socket: borrowing Descriptor, _ family: SocketAddress.Family) throws(NetworkError)
    {
        let parameters = parameters
        if let name = parameters.requiredInterface {
            // The kernel would take the one for none, and cut the other: IFNAMSIZ of netdevice(7).
            guard (1...15).contains(name.utf8.count) else {
                throw Self.refused("interface \(name)", "a name has 1 to 15 bytes")
            }
            try option("interface \(name)") { () throws(SystemError) in
                try socket.bindToInterface(name)
            }
        }
        if let enabled = parameters.addressReuse { try set(socket, .reuseAddress, enabled ? 1 : 0) }
        if let enabled = parameters.portReuse { try set(socket, .reusePort, enabled ? 1 : 0) }
        if let mark = parameters.mark { try set(socket, .mark, Int32(bitPattern: mark)) }
        if let size = parameters.sendBufferSize { try setBuffer(socket, .sendBuffer, size) }
        if let size = parameters.receiveBufferSize { try setBuffer(socket, .receiveBuffer, size) }
        switch family {
        case .ipv4:
            if parameters.ipv6Only != nil {
                throw Self.refused("ipv6Only", "an IPv4 socket has no such option")
            }
            if let count = parameters.hopLimit { try setHops(socket, .ipTimeToLive, count) }
            if let serviceClass = parameters.serviceClass {
                try set(socket, .ipTypeOfService, serviceClass.dscp << 2)
            }
        case .ipv6:
            if let enabled = parameters.ipv6Only { try set(socket, .ipv6Only, enabled ? 1 : 0) }
            let isDual = parameters.ipv6Only != true
            if let count = parameters.hopLimit {
                try setHops(socket, .ipv6Hops, count)
                if isDual { try setHops(socket, .ipTimeToLive, count) }
            }
            if let serviceClass = parameters.serviceClass {
                try set(socket, .ipv6TrafficClass, serviceClass.dscp << 2)
                if isDual { try set(socket, .ipTypeOfService, serviceClass.dscp << 2) }
            }
        case .unix, .other:
            try refuseOnUnix("hopLimit", parameters.hopLimit)
            try refuseOnUnix("serviceClass", parameters.serviceClass)
            try refuseOnUnix("ipv6Only", parameters.ipv6Only)
            try refuseOnUnix("requiredInterface", parameters.requiredInterface)
            try refuseOnUnix("ipVersion", parameters.ipVersion)
        }
        // After the DSCP, which sets the priority too.
        if let serviceClass = parameters.serviceClass {
            try set(socket, .priority, serviceClass.priority)
        }
    }

    /// Repeats on an accepted socket what the kernel does not hand down from the listening one: the
    /// priority, and a Unix socket's buffers.
    func applyToAccepted(
        _ socket: borrowing Descriptor, _ kind: TransportKind
    ) throws(NetworkError) {
        if let serviceClass = parameters.serviceClass {
            try set(socket, .priority, serviceClass.priority)
        }
        guard kind == .unix else { return }
        if let size = parameters.sendBufferSize { try setBuffer(socket, .sendBuffer, size) }
        if let size = parameters.receiveBufferSize { try setBuffer(socket, .receiveBuffer, size) }
    }

    func apply(
        _ tcp: TCP, to socket: borrowing Descriptor, isListener: Bool
    ) throws(NetworkError) {
        try set(socket, .noDelay, tcp.noDelay ?? true ? 1 : 0)
        if let keepalive = tcp.keepalive {
            try set(socket, .keepAlive, 1)
            try set(socket, .keepIdle, Self.whole(1_000_000_000, in: keepalive.idle))
            if let interval = keepalive.interval {
                try set(socket, .keepInterval, Self.whole(1_000_000_000, in: interval))
            }
            if let count = keepalive.count { try set(socket, .keepCount, Int32(clamping: count)) }
        }
        if let limit = tcp.userTimeout {
            // 0 would be the host's own.
            guard limit > .zero else { throw Self.refused("userTimeout \(limit)", "out of range") }
            try set(socket, .userTimeout, Self.whole(1_000_000, in: limit))
        }
        if let size = tcp.maximumSegmentSize {
            // 0 would change nothing.
            guard size > 0 else {
                throw Self.refused("maximumSegmentSize \(size)", "out of range")
            }
            try set(socket, .maximumSegment, Int32(clamping: size))
        }
        if let size = tcp.notSentLowWaterMark {
            // The kernel would take it for a very large one.
            guard size > 0 else {
                throw Self.refused("notSentLowWaterMark \(size)", "out of range")
            }
            try set(socket, .notSentLowWater, Int32(clamping: size))
        }
        if let enabled = tcp.fastOpen {
            // On a listener the value is the number of pending fast opens.
            let pending = isListener ? backlog : 1
            try set(socket, isListener ? .fastOpen : .fastOpenConnect, enabled ? pending : 0)
        }
    }

    /// A socket that is bound to one address answers from it anyway; asking the kernel for each
    /// datagram's address costs a sixth of the whole.
    func apply(
        _ udp: UDP, to socket: borrowing Descriptor, _ family: SocketAddress.Family,
        answersFromMany: Bool
    ) throws(NetworkError) {
        if udp.receiveTime { try set(socket, .timestamps, 1) }
        // What the kernel joins may be as long as a datagram can be. Linux before 5.0 has no GRO.
        if udp.maximumReceiveSize == 65_535, family == .ipv4 || family == .ipv6 {
            try? socket.set(.udpReceiveOffload, to: 1)
        }
        switch family {
        case .ipv4:
            try set(socket, .ipReceiveTypeOfService, 1)
            if answersFromMany { try set(socket, .ipPacketInfo, 1) }
            if udp.noChecksum { try set(socket, .noChecksum, 1) }
            if let choice = udp.fragmentation { try set(socket, .ipMTUDiscover, choice.rawValue) }
        case .ipv6:
            try set(socket, .ipv6ReceiveTrafficClass, 1)
            if answersFromMany {
                try set(socket, .ipv6ReceivePacketInfo, 1)
                // Which of the host's addresses an IPv4 broadcast came to, only this one tells.
                if parameters.ipv6Only != true { try set(socket, .ipPacketInfo, 1) }
            }
            if udp.noChecksum {
                throw Self.refused("noChecksum", "IPv6 datagrams need a checksum (RFC 8200 §8.1)")
            }
            if let choice = udp.fragmentation {
                try set(socket, .ipv6MTUDiscover, choice.rawValue)
                if parameters.ipv6Only != true { try set(socket, .ipMTUDiscover, choice.rawValue) }
            }
            if parameters.ipv6Only != true { try set(socket, .ipReceiveTypeOfService, 1) }
        case .unix, .other:
            if udp.noChecksum { throw Self.refused("noChecksum", "a Unix socket has none") }
            try refuseOnUnix("fragmentation", udp.fragmentation)
        }
    }

    /// An option of TCP on a Unix stream would be ignored: it fails instead.
    func refuseOptionsOfTCP(_ tcp: TCP) throws(NetworkError) {
        try refuseOnUnix("noDelay", tcp.noDelay)
        try refuseOnUnix("keepalive", tcp.keepalive)
        try refuseOnUnix("userTimeout", tcp.userTimeout)
        try refuseOnUnix("fastOpen", tcp.fastOpen)
        try refuseOnUnix("maximumSegmentSize", tcp.maximumSegmentSize)
        try refuseOnUnix("notSentLowWaterMark", tcp.notSentLowWaterMark)
        try refuseOnUnix("multipath", tcp.multipath ? true : nil)
    }

    /// What a listener would have to ignore.
    func checkListener(
        _ family: SocketAddress.Family, _ type: Descriptor.SocketType, makesFile: Bool
    ) throws(NetworkError) {
        if !parameters.resolutions.isEmpty {
            throw Self.refused("resolve", "a listener looks no name up")
        }
        if type != .stream { try refuseBacklog() }
        if parameters.choosesInterface || !parameters.waitsForConnectivity {
            throw Self.refused("the choice of a path", "only a connection has one")
        }
        if parameters.localEndpoint != nil {
            throw Self.refused("localEndpoint", "a listener is bound to its own endpoint")
        }
        if let version = parameters.ipVersion, family == .ipv4 ? version != .ipv4 : version != .ipv6
        {
            throw Self.refused("ipVersion", "the listener's address is of another")
        }
        if !makesFile { try refuseSocketMode() }
    }

    /// What a connection would have to ignore.
    func checkConnection() throws(NetworkError) {
        try refuseSocketMode()
        try refuseBacklog()
    }

    var backlog: Int32 { Int32(clamping: parameters.backlog ?? 4_096) }

    private func refuseBacklog() throws(NetworkError) {
        if parameters.backlog != nil {
            throw Self.refused("backlog", "only a listener of streams has one")
        }
    }

    /// Without a file of its own, a socket has no mode.
    private func refuseSocketMode() throws(NetworkError) {
        if parameters.unixSocketMode != nil {
            throw Self.refused("unixSocketMode", "only a listener on a path makes a file")
        }
    }

    // MARK: One option

    private func set(
        _ socket: borrowing Descriptor, _ option: SocketOption, _ value: Int32
    ) throws(NetworkError) {
        do throws(SystemError) { try socket.set(option, to: value) } catch {
            throw Self.refused("\(option.name) = \(value)", error)
        }
    }

    private func setHops(
        _ socket: borrowing Descriptor, _ option: SocketOption, _ count: Int
    ) throws(NetworkError) {
        guard (1...255).contains(count) else {
            throw Self.refused("hopLimit \(count)", "out of range (1 to 255)")
        }
        try set(socket, option, Int32(count))
    }

    /// The kernel cuts a size that is too large without a word, and takes a negative one for the largest;
    /// here both are errors.
    private func setBuffer(
        _ socket: borrowing Descriptor, _ option: SocketOption, _ size: Int
    ) throws(NetworkError) {
        guard size > 0 else { throw Self.refused("\(option.name) = \(size)", "out of range") }
        try set(socket, option, Int32(clamping: size))
        let allowed = Int((try? socket.get(option)) ?? 0) / 2
        guard allowed >= size else {
            throw Self.refused(
                "\(option.name) = \(size)",
                "the host allows \(allowed): raise net.core.wmem_max or net.core.rmem_max")
        }
    }

    private func option(
        _ subject: String, _ body: () throws(SystemError) -> Void
    ) throws(NetworkError) {
        do throws(SystemError) { try body() } catch { throw Self.refused(subject, error) }
    }

    private func refuseOnUnix<Value>(_ name: String, _ value: Value?) throws(NetworkError) {
        if value != nil { throw Self.refused(name, "a Unix socket has no such option") }
    }

    /// How many units of so many nanoseconds, rounded up: 0 means something else to the kernel.
    private static func whole(_ unit: UInt64, in duration: Duration) -> Int32 {
        let (count, rest) = MonotonicClock.nanoseconds(in: duration).quotientAndRemainder(
            dividingBy: unit)
        return Int32(clamping: count + (rest > 0 ? 1 : 0))
    }

    private static func refused(_ subject: String, _ reason: String) -> NetworkError {
        NetworkError(.optionFailed, .setup, "\(subject): \(reason)")
    }

    private static func refused(_ subject: String, _ error: SystemError) -> NetworkError {
        NetworkError(
            .optionFailed, .setup, "\(subject): the kernel refuses it",
            cause: .system(errno: error.code, call: error.call))
    }
}

extension Parameters.ServiceClass {
    var dscp: Int32 {
        switch self {
        case .bestEffort: 0
        case .background: 1
        case .responsiveData: 18
        case .signaling: 40
        case .interactiveVideo: 34
        case .interactiveVoice: 46
        }
    }

    var priority: Int32 {
        switch self {
        case .bestEffort: 0
        case .background: 1
        case .responsiveData: 2
        case .signaling: 4
        case .interactiveVideo: 5
        case .interactiveVoice: 6
        }
    }
}

extension UDP.Fragmentation {
    var rawValue: Int32 {
        switch self {
        case .byPath: PathMTUDiscovery.want.rawValue
        case .allowed: PathMTUDiscovery.none.rawValue
        case .prohibited: PathMTUDiscovery.always.rawValue
        }
    }
}
