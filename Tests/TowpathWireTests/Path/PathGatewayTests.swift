import Testing
import TowpathWire

@Suite("PathEvaluator: whether the gateway answers")
struct PathGatewayTests {
    private func query(_ text: String, on index: UInt32) throws -> NeighborQuery {
        NeighborQuery(try IPAddress(parsing: text), on: index)
    }

    @Test("a gateway that fails is told, and nothing else of the path is different")
    func failed() throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 10, via: "192.0.2.1")
        let unknown = try host.path()
        #expect(unknown.isGatewayReachable == nil)
        host.neighbors[try query("192.0.2.1", on: 10)] = .failed
        var failed = try host.path()
        #expect(failed.isGatewayReachable == false)
        #expect(failed.status == .satisfied)
        #expect(failed != unknown)
        failed.isGatewayReachable = nil
        #expect(failed == unknown)
        host.neighbors[try query("192.0.2.1", on: 10)] = .stale
        #expect(try host.path().isGatewayReachable == true)
        #expect(try host.path(to: ["1.1.1.1"]).isGatewayReachable == true)
        host.neighbors[try query("192.0.2.1", on: 10)] = .incomplete
        #expect(try host.path() == unknown)
    }

    @Test("the first gateway counts, on its own interface")
    func first() throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 10, via: "192.0.2.1")
        try host.addDefault(.ipv6, by: 11, via: "fe80::1")
        host.neighbors[try query("fe80::1", on: 11)] = .failed
        host.neighbors[try query("192.0.2.1", on: 11)] = .failed
        #expect(try host.path().isGatewayReachable == nil)
        host.neighbors[try query("192.0.2.1", on: 10)] = .reachable
        #expect(try host.path().isGatewayReachable == true)
        // Without IPv4 it is the one of IPv6, which has a zone in the path.
        host.removeAddresses(of: 10, .ipv4)
        let six = try host.path()
        #expect(six.gateways.map(\.description) == ["fe80::1%w1"])
        #expect(six.isGatewayReachable == false)
    }

    @Test("on the link, and without a way, there is no gateway that could answer")
    func none() throws {
        var host = try SimulatedHost.pair()
        try host.addDefault(by: 10)
        #expect(try host.path().isGatewayReachable == nil)
        #expect(try host.path().status == .satisfied)
        host = try SimulatedHost.pair()
        try host.addDefault(by: 10, via: "192.0.2.1")
        host.neighbors[try query("192.0.2.1", on: 10)] = .permanent
        host.link(10, "w0", .noCarrier)
        #expect(try host.path().isGatewayReachable == nil)
    }
}
