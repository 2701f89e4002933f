import TestSupport
import Testing
import TowpathWire

private func v4(_ last: UInt8) -> IPAddress { .v4(IPv4Address(192, 0, 2, last)) }
private func v6(_ last: UInt8) -> IPAddress {
    .v6(IPv6Address(bytes: [0x20, 1, 0xD, 0xB8] + Array(repeating: 0, count: 11) + [last]) ?? .any)
}

extension Duration {
    fileprivate static func ms(_ count: Int) -> Duration { .milliseconds(count) }
}

extension ConnectionRace {
    /// What the race asks for at this time, up to the first step that is no connection.
    fileprivate mutating func steps(at now: Duration) -> [Step] {
        var steps: [Step] = []
        repeat { steps.append(next(now: now)) } while steps.last.isConnect && steps.count < 100
        return steps
    }
}

extension ConnectionRace.Step? {
    fileprivate var isConnect: Bool { if case .connect = self { true } else { false } }
}

@Suite("RFC 8305 §3: handling of two lookups")
struct ConnectionRaceResolutionTests {
    var race = ConnectionRace()

    @Test("an IPv6 answer is used at once")
    mutating func ipv6First() {
        #expect(race.steps(at: .ms(0)) == [.wait(until: nil)])
        race.resolved(.ipv6, [v6(1)], now: .ms(20))
        #expect(race.steps(at: .ms(20)) == [.connect(attempt: 0, to: v6(1)), .wait(until: nil)])
        race.resolved(.ipv4, [v4(1)], now: .ms(30))
        #expect(race.steps(at: .ms(30)) == [.wait(until: .ms(270))])
        #expect(race.steps(at: .ms(270)) == [.connect(attempt: 1, to: v4(1)), .wait(until: nil)])
    }

    @Test("an IPv4 answer waits 50 ms for the IPv6 one")
    mutating func ipv4First() {
        race.resolved(.ipv4, [v4(1)], now: .ms(20))
        #expect(race.steps(at: .ms(20)) == [.wait(until: .ms(70))])
        #expect(race.steps(at: .ms(69)) == [.wait(until: .ms(70))])
        #expect(race.steps(at: .ms(70)) == [.connect(attempt: 0, to: v4(1)), .wait(until: nil)])
    }

    @Test("an IPv6 answer within the 50 ms is tried first, at once")
    mutating func ipv6WithinDelay() {
        race.resolved(.ipv4, [v4(1)], now: .ms(20))
        race.resolved(.ipv6, [v6(1)], now: .ms(40))
        #expect(
            race.steps(at: .ms(40)) == [.connect(attempt: 0, to: v6(1)), .wait(until: .ms(290))])
    }

    @Test("a failed IPv6 lookup ends the 50 ms")
    mutating func ipv6Fails() {
        race.resolved(.ipv4, [v4(1)], now: .ms(20))
        race.resolved(.ipv6, [], now: .ms(30))
        #expect(race.steps(at: .ms(30)) == [.connect(attempt: 0, to: v4(1)), .wait(until: nil)])
    }

    @Test("an IPv4 answer after a failed IPv6 lookup does not wait")
    mutating func ipv6FailsFirst() {
        race.resolved(.ipv6, [], now: .ms(10))
        #expect(race.steps(at: .ms(10)) == [.wait(until: nil)])
        race.resolved(.ipv4, [v4(1)], now: .ms(20))
        #expect(race.steps(at: .ms(20)) == [.connect(attempt: 0, to: v4(1)), .wait(until: nil)])
    }

    @Test("an IPv6 answer after the 50 ms goes to the head of what is not yet started")
    mutating func ipv6Late() {
        race.resolved(.ipv4, [v4(1), v4(2)], now: .ms(0))
        #expect(
            race.steps(at: .ms(50)) == [.connect(attempt: 0, to: v4(1)), .wait(until: .ms(300))])
        race.resolved(.ipv6, [v6(1)], now: .ms(100))
        #expect(
            race.steps(at: .ms(300)) == [.connect(attempt: 1, to: v6(1)), .wait(until: .ms(550))])
        #expect(race.steps(at: .ms(550)) == [.connect(attempt: 2, to: v4(2)), .wait(until: nil)])
    }

    @Test("a race is not exhausted while a lookup runs, and a late answer is used at once")
    mutating func lateAfterFailure() {
        race.resolved(.ipv6, [v6(1)], now: .ms(0))
        #expect(race.steps(at: .ms(0)).first.isConnect)
        race.failed(0, now: .ms(5))
        #expect(race.steps(at: .ms(5)) == [.wait(until: nil)])
        race.resolved(.ipv4, [v4(1)], now: .ms(30))
        #expect(race.steps(at: .ms(30)) == [.connect(attempt: 1, to: v4(1)), .wait(until: nil)])
        race.failed(1, now: .ms(31))
        #expect(race.steps(at: .ms(31)) == [.exhausted])
    }

    @Test("a name without addresses is exhausted, once both lookups are over")
    mutating func noAddresses() {
        race.resolved(.ipv4, [], now: .ms(10))
        #expect(race.steps(at: .ms(10)) == [.wait(until: nil)])
        race.resolved(.ipv6, [], now: .ms(20))
        #expect(race.steps(at: .ms(20)) == [.exhausted])
    }

    @Test("the delays can be set")
    func delays() {
        var race = ConnectionRace(resolutionDelay: .ms(1), attemptDelay: .ms(10))
        race.resolved(.ipv4, [v4(1), v4(2)], now: .ms(0))
        #expect(race.steps(at: .ms(0)) == [.wait(until: .ms(1))])
        #expect(race.steps(at: .ms(1)) == [.connect(attempt: 0, to: v4(1)), .wait(until: .ms(11))])
    }
}

@Suite("RFC 8305 §4 and §5: order and pace of the attempts")
struct ConnectionRaceAttemptTests {
    @Test("families alternate, IPv6 first, each in the resolver's order")
    func interleaved() {
        var race = ConnectionRace(addresses: [v4(1), v4(2), v6(1), v6(2), v6(3), v6(4)])
        var order: [IPAddress] = []
        for turn in 0..<6 {
            guard case .connect(let attempt, let address) = race.next(now: .ms(250 * turn)) else {
                break
            }
            #expect(attempt == turn)
            order.append(address)
        }
        #expect(order == [v6(1), v4(1), v6(2), v4(2), v6(3), v6(4)])
    }

    @Test("one address under several names is tried once")
    func duplicates() {
        let mapped = IPAddress.v6(IPv6Address(ipv4Mapped: IPv4Address(192, 0, 2, 1)))
        var race = ConnectionRace(addresses: [mapped, v4(1), v4(1)])
        #expect(race.steps(at: .ms(0)) == [.connect(attempt: 0, to: v4(1)), .wait(until: nil)])
        race.failed(0, now: .ms(1))
        #expect(race.steps(at: .ms(1)) == [.exhausted])
    }

    @Test("no addresses at all are exhausted at once")
    func none() {
        var race = ConnectionRace(addresses: [])
        #expect(race.next(now: .zero) == .exhausted)
    }

    @Test("reports about attempts that do not run are ignored")
    func unknownAttempts() {
        var race = ConnectionRace(addresses: [v4(1), v4(2)])
        race.failed(0, now: .ms(0))
        race.succeeded(7)
        #expect(
            race.steps(at: .ms(0)) == [.connect(attempt: 0, to: v4(1)), .wait(until: .ms(250))])
        race.failed(3, now: .ms(10))
        #expect(race.steps(at: .ms(10)) == [.wait(until: .ms(250))])
        race.failed(0, now: .ms(20))
        race.succeeded(0)
        #expect(race.steps(at: .ms(20)) == [.connect(attempt: 1, to: v4(2)), .wait(until: nil)])
    }

    @Test("after a success nothing else is asked for")
    func done() {
        var race = ConnectionRace()
        race.resolved(.ipv6, [v6(1), v6(2)], now: .ms(0))
        #expect(race.steps(at: .ms(0)).first.isConnect)
        #expect(race.steps(at: .ms(250)).first.isConnect)
        race.succeeded(0)
        race.failed(1, now: .ms(260))
        race.resolved(.ipv4, [v4(1)], now: .ms(270))
        #expect(race.steps(at: .ms(900)) == [.done])
    }

    @Test("BR-007: a slow first address is not abandoned when the next attempt starts")
    func slowFirst() {
        var race = ConnectionRace(addresses: [v6(1), v4(1)])
        #expect(
            race.steps(at: .ms(0)) == [.connect(attempt: 0, to: v6(1)), .wait(until: .ms(250))])
        #expect(race.steps(at: .ms(250)) == [.connect(attempt: 1, to: v4(1)), .wait(until: nil)])
        race.succeeded(0)  // at 800 ms: 400 ms there, 400 ms back
        #expect(race.steps(at: .ms(800)) == [.done])
    }

    @Test("BR-007: a black-holed first address costs 250 ms and no more")
    func blackHole() {
        var race = ConnectionRace(addresses: [v6(1), v4(1)])
        #expect(race.steps(at: .ms(0)).first.isConnect)
        #expect(race.steps(at: .ms(250)).first == .connect(attempt: 1, to: v4(1)))
        race.succeeded(1)
        #expect(race.next(now: .ms(251)) == .done)
    }

    @Test("BR-007: a refused address is followed by the next one at once")
    func refused() {
        var race = ConnectionRace(addresses: [v6(1), v4(1), v6(2)])
        #expect(race.steps(at: .ms(0)).first.isConnect)
        race.failed(0, now: .ms(3))
        #expect(
            race.steps(at: .ms(3)) == [.connect(attempt: 1, to: v4(1)), .wait(until: .ms(253))])
        race.failed(1, now: .ms(4))
        #expect(race.steps(at: .ms(4)) == [.connect(attempt: 2, to: v6(2)), .wait(until: nil)])
    }

    @Test(
        "BR-007: four dropped addresses are all being tried, and the race waits for the caller's timeout"
    )
    func allDropped() {
        var race = ConnectionRace(addresses: [v6(1), v6(2), v4(1), v4(2)])
        for turn in 0..<4 { #expect(race.steps(at: .ms(250 * turn)).count == 2) }
        #expect(race.steps(at: .ms(15_000)) == [.wait(until: nil)])
        for attempt in 0..<3 { race.failed(attempt, now: .ms(127_000)) }
        #expect(race.steps(at: .ms(127_000)) == [.wait(until: nil)])
        race.failed(3, now: .ms(127_001))
        #expect(race.steps(at: .ms(127_001)) == [.exhausted])
    }

    @Test("every race ends, tries each address once, and keeps the pace", arguments: 0..<200)
    func randomRaces(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var lookups: [(at: Int, family: AddressFamily, addresses: [IPAddress])] = []
        for family in [AddressFamily.ipv4, .ipv6] {
            let addresses = (0..<UInt8.random(in: 0...4, using: &random)).map(
                family == .ipv4 ? v4 : v6)
            lookups.append((Int.random(in: 0...600, using: &random), family, addresses))
        }
        let all = Set(lookups.flatMap(\.addresses))
        let willSucceed = Int.random(in: 0...20, using: &random)
        var ends: [(at: Int, attempt: Int)] = []
        var tried: Set<IPAddress> = []
        var mayStartAt = 0
        var race = ConnectionRace()
        for now in 0..<10_000 {
            for lookup in lookups where lookup.at == now {
                race.resolved(lookup.family, lookup.addresses, now: .ms(now))
            }
            for end in ends where end.at == now {
                if end.attempt == willSucceed {
                    race.succeeded(end.attempt)
                    #expect(race.next(now: .ms(now)) == .done)
                    return
                }
                race.failed(end.attempt, now: .ms(now))
                mayStartAt = now
            }
            for step in race.steps(at: .ms(now)) {
                switch step {
                case .connect(let attempt, let address):
                    #expect(tried.insert(address).inserted)
                    #expect(now >= mayStartAt)
                    mayStartAt = now + 250
                    ends.append((now + Int.random(in: 1...900, using: &random), attempt))
                case .wait(let until):
                    if let until, until <= .ms(now) { Issue.record("told to wait for the past") }
                case .exhausted:
                    #expect(tried == all && lookups.allSatisfy { $0.at <= now })
                    #expect(ends.allSatisfy { $0.at <= now })
                    return
                case .done:
                    Issue.record("done without a success")
                }
            }
        }
        Issue.record("the race did not end")
    }
}
