import CTowpathLinux
import TestSupport
import Testing
import TowpathReactor

@Suite("Resolver", .timeLimit(.minutes(2)))
struct ResolverTests {
    private static let unknown = [EAI_NONAME, EAI_AGAIN, EAI_FAIL, noData, addressFamily]
    /// EAI_NODATA and EAI_ADDRFAMILY, which <netdb.h> hides without _GNU_SOURCE.
    private static let noData: Int32 = -5
    private static let addressFamily: Int32 = -9

    private func lookUp(
        _ name: String, _ family: SocketAddress.Family, on resolver: Resolver = .shared
    ) async throws -> Resolver.Answer {
        let answers = Inbox<Resolver.Answer>()
        resolver.lookUp(name, family) { answers.send($0) }
        return try await answers.next()
    }

    @Test("localhost is 127.0.0.1, once")
    func localhost() async throws {
        #expect(try await lookUp("localhost", .ipv4).get() == [.loopback()])
    }

    @Test("localhost is ::1, or has no IPv6 address")
    func localhost6() async throws {
        switch try await lookUp("localhost", .ipv6) {
        case .success(let addresses): #expect(addresses == [.loopback6()])
        case .failure(let failure): #expect(Self.unknown.contains(failure.code))
        }
    }

    @Test("an address in text is itself, in its own family alone")
    func literal() async throws {
        let four = try await lookUp("192.0.2.1", .ipv4).get()
        #expect(four == [SocketAddress(ipv4: 0xC000_0201, port: 0)])
        let six = try await lookUp("2001:db8::7", .ipv6).get()
        #expect(
            six == [SocketAddress(ipv6High: 0x2001_0DB8 << 32, low: 7, scope: 0, port: 0)])
        for (name, family) in [("2001:db8::7", .ipv4), ("192.0.2.1", .ipv6)]
            as [(String, SocketAddress.Family)]
        {
            guard case .failure(let failure) = try await lookUp(name, family) else {
                Issue.record("\(name) was found in the other family")
                continue
            }
            #expect(failure.code == Self.addressFamily)
            #expect(!failure.isTemporary)
        }
    }

    @Test("a name under .invalid is not found, and the failure names it")
    func invalid() async throws {
        guard case .failure(let failure) = try await lookUp("no-such-name.invalid", .ipv4) else {
            Issue.record("the name was found")
            return
        }
        // Without a name server the answer is that there was none.
        #expect(Self.unknown.contains(failure.code))
        #expect(failure.isTemporary == (failure.code == EAI_AGAIN))
        #expect(failure.system == 0)
        #expect(failure.message.hasPrefix("no-such-name.invalid: "))
    }

    @Test("a name with a NUL byte is not the name before it")
    func nul() async throws {
        let answer = try await lookUp("127.0.0.1\0.example", .ipv4)
        #expect(throws: Resolver.Failure.self) { try answer.get() }
    }

    @Test("who asks for one name at one time shares one flight, and each is answered once")
    func flight() async throws {
        let pool = BlockingPool(limit: 1)
        let resolver = Resolver(pool: pool)
        let (gate, order) = (Gate(), Inbox<String>())
        try pool.submit { gate.wait() }
        for caller in ["first", "second"] {
            resolver.lookUp("127.0.0.1", .ipv4) { answer in
                order.send("\(caller): \((try? answer.get().count) ?? 0)")
            }
            // Had the second its own flight, it would land after this.
            if caller == "first" { try pool.submit { order.send("between") } }
        }
        gate.open()
        #expect(try await order.next(3) == ["first: 1", "second: 1", "between"])
        // The flight is over: the next caller has its own.
        resolver.lookUp("127.0.0.1", .ipv4) { _ in order.send("third") }
        #expect(try await order.next() == "third")
    }

    @Test("another name and another family are flights of their own")
    func separateFlights() async throws {
        let pool = BlockingPool(limit: 1)
        let resolver = Resolver(pool: pool)
        let (gate, order) = (Gate(), Inbox<String>())
        try pool.submit { gate.wait() }
        resolver.lookUp("127.0.0.1", .ipv4) { _ in order.send("127.0.0.1") }
        try pool.submit { order.send("between") }
        resolver.lookUp("127.0.0.1", .ipv6) { _ in order.send("other family") }
        resolver.lookUp("127.0.0.2", .ipv4) { _ in order.send("other name") }
        gate.open()
        #expect(try await order.next(4) == ["127.0.0.1", "between", "other family", "other name"])
    }

    @Test("a completion may look up the same name again")
    func again() async throws {
        let resolver = Resolver(pool: BlockingPool(limit: 1))
        let order = Inbox<Int>()
        resolver.lookUp("127.0.0.1", .ipv4) { _ in
            resolver.lookUp("127.0.0.1", .ipv4) { _ in order.send(2) }
            order.send(1)
        }
        #expect(try await order.next(2) == [1, 2])
    }

    @Test("many callers of few names are all answered")
    func many() async throws {
        let resolver = Resolver(pool: BlockingPool(limit: 3))
        let answers = Inbox<Bool>()
        for index in 0..<400 {
            let last = UInt32(index % 4)
            resolver.lookUp("127.0.0.\(last)", .ipv4) { answer in
                answers.send(
                    (try? answer.get()) == [SocketAddress(ipv4: 0x7F00_0000 | last, port: 0)])
            }
        }
        #expect(try await answers.next(400) == Array(repeating: true, count: 400))
    }
}
