internal import CTowpathLinux

/// Host names to addresses through getaddrinfo(3), so the host's nsswitch.conf decides.
///
/// One lookup per family: a single AF_UNSPEC call answers only when the slower of the two does.
/// Callers that ask for the same name at the same time share one flight.
package final class Resolver: Sendable {
    package static let shared = Resolver(pool: .shared)

    package struct Failure: Error, Equatable {
        /// An EAI_ code of getaddrinfo(3); for EAI_SYSTEM the errno is in `system`.
        package let code: Int32
        package let system: Int32
        package let message: String

        /// The name server could not be asked, or said that it failed for now.
        package var isTemporary: Bool { code == EAI_AGAIN || code == EAI_SYSTEM }
    }

    package typealias Answer = Result<[SocketAddress], Failure>

    private struct Flight: Hashable {
        let name: String
        let family: SocketAddress.Family
    }

    private let pool: BlockingPool
    private let flights = Locked([Flight: [@Sendable (Answer) -> Void]]())

    package init(pool: BlockingPool) {
        self.pool = pool
    }

    /// Calls `completion` once, on a thread of the pool, or at once if there is none.
    package func lookUp(
        _ name: String, _ family: SocketAddress.Family,
        completion: @escaping @Sendable (Answer) -> Void
    ) {
        let flight = Flight(name: name, family: family)
        let isFirst = flights.withLock { flights in
            flights[flight, default: []].append(completion)
            return flights[flight]?.count == 1
        }
        guard isFirst else { return }
        do throws(SystemError) {
            try pool.submit { self.land(flight, Self.ask(name, family)) }
        } catch {
            let message = "no thread for the look-up of \(name): \(error)"
            land(flight, .failure(Failure(code: EAI_SYSTEM, system: error.code, message: message)))
        }
    }

    private func land(_ flight: Flight, _ answer: Answer) {
        let waiting = flights.withLock { $0.removeValue(forKey: flight) } ?? []
        for completion in waiting { completion(answer) }
    }

    private static func ask(_ name: String, _ family: SocketAddress.Family) -> Answer {
        guard !name.utf8.contains(0) else {
            let message = "a host name has no NUL byte"
            return .failure(Failure(code: EAI_NONAME, system: 0, message: message))
        }
        var hints = addrinfo()
        hints.ai_family = family == .ipv6 ? AF_INET6 : AF_INET
        hints.ai_socktype = SHIM_SOCK_STREAM
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(name, nil, &hints, &list)
        guard code == 0 else {
            let system = code == EAI_SYSTEM ? shim_errno() : 0
            let reason =
                code == EAI_SYSTEM
                ? String(cString: strerror(system)) : String(cString: gai_strerror(code))
            return .failure(Failure(code: code, system: system, message: "\(name): \(reason)"))
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next {
            next = entry.pointee.ai_next
            guard let pointer = entry.pointee.ai_addr,
                entry.pointee.ai_addrlen <= MemoryLayout<sockaddr_storage>.size
            else { continue }
            var address = SocketAddress()
            memcpy(&address.storage, pointer, Int(entry.pointee.ai_addrlen))
            address.length = entry.pointee.ai_addrlen
            if !addresses.contains(address) { addresses.append(address) }
        }
        return .success(addresses)
    }
}
