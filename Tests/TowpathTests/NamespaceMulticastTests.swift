import TestSupport
import Testing
import Towpath

/// Two namespaces that two links join. The second test runs in one of them, where the first starts it.
@Suite("Network namespaces: multicast", .timeLimit(.minutes(2)))
struct NamespaceMulticastTests {
    private static let port: UInt16 = 7_007

    @Test("BR-013: a group is joined on both links, or on one; groups of others are not heard")
    func multicast() async throws {
        guard await NetworkNamespace.isPossible("BR-013") else { return }
        let (near, far) = (try await NetworkNamespace(), try await NetworkNamespace())
        for number in 1...2 {
            try await near.ip(
                "link", "add", "v\(number)", "type", "veth", "peer", "name", "v\(number)", "netns",
                far.name)
            for (namespace, host) in [(near, 1), (far, 2)] {
                try await namespace.ip(
                    "addr", "add", "10.7.\(number).\(host)/24", "dev", "v\(number)")
                try await namespace.ip(
                    "addr", "add", "fd00:7:\(number)::\(host)/64", "dev", "v\(number)", "nodad")
                try await namespace.ip("link", "set", "v\(number)", "up")
            }
        }
        try await near.ip("route", "add", "default", "via", "10.7.2.2")
        try await near.run("insideMulticast", far: far)
    }

    @Test func insideMulticast() async throws {
        guard NetworkNamespace.isInside() else { return }
        for (wanted, foreign) in [("239.1.2.3", "239.9.9.9"), ("ff15::3", "ff15::9")] {
            let groups = [try IPAddress(parsing: wanted)]
            let group = try MulticastGroup(joining: groups, port: Self.port)
            #expect(Set(group.interfaces) == ["v1", "v2"])
            let other = try MulticastGroup(
                joining: [IPAddress(parsing: foreign)], port: Self.port)
            let single = try MulticastGroup(joining: groups, port: Self.port, interface: "v2")
            // From the other side, over each link.
            for (number, link) in [(1, "v1"), (2, "v2")] as [(UInt8, String)] {
                for address in [foreign, wanted] {
                    try await send([number], to: address, over: link)
                }
            }
            #expect(try await received(2, by: group, to: wanted) == [[1], [2]])
            #expect(try await received(2, by: other, to: foreign) == [[1], [2]])
            #expect(try await received(1, by: single, to: wanted) == [[2]])
            // From here: one copy on each link, each of which is heard once where it was joined.
            try await group.send([3])
            #expect(try await received(2, by: group, to: wanted) == [[3], [3]])
            #expect(try await received(1, by: single, to: wanted) == [[3]])
            try await single.send([4])
            #expect(try await received(1, by: group, to: wanted) == [[4]])
            #expect(try await received(1, by: single, to: wanted) == [[4]])
            for silent in [group, other, single] {
                let late = try await datagramError {
                    _ = try await silent.receive(timeout: .milliseconds(1))
                }
                #expect(late.code == .timedOut)
            }
        }
    }

    /// Sends from the far namespace over one link.
    private func send(_ bytes: [UInt8], to address: String, over link: String) async throws {
        let program = """
            import socket, sys
            six = ":" in "\(address)"
            s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"\(link)")
            s.sendto(bytes(\(bytes)), ("\(address)", \(Self.port)))
            """
        try await Program.succeed([
            "ip", "netns", "exec", NetworkNamespace.far, "python3", "-c", program,
        ])
    }

    private func received(
        _ count: Int, by group: MulticastGroup, to address: String
    ) async throws -> [[UInt8]] {
        var received: [[UInt8]] = []
        while received.count < count {
            let datagram = try await group.receive()
            #expect(datagram.localEndpoint == .udp(address, Self.port))
            received.append(datagram.bytes)
        }
        return received
    }
}
