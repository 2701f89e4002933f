import Testing
import Towpath
import TowpathReactor

@Suite("The options of the path", .timeLimit(.minutes(1)))
struct OptionsPathTests {
    /// IPv4, IPv6, and IPv4 on a listener for both.
    enum Way: CaseIterable {
        case ipv4, ipv6, ipv4OnDualStack

        var listener: Endpoint {
            switch self {
            case .ipv4: .loopback()
            case .ipv6: .loopback6()
            case .ipv4OnDualStack: .port(0)
            }
        }

        var client: Endpoint { self == .ipv6 ? .loopback6() : .loopback() }
    }

    // MARK: Service class

    static let codePoints: [Parameters.ServiceClass: (dscp: Int32, priority: Int32)] = [
        .bestEffort: (0, 0), .background: (1, 1), .responsiveData: (18, 2), .signaling: (40, 4),
        .interactiveVideo: (34, 5), .interactiveVoice: (46, 6),
    ]

    @Test(
        "a service class is a DSCP and a priority, on both sides",
        arguments: Parameters.ServiceClass.allCases, Way.allCases)
    func serviceClass(serviceClass: Parameters.ServiceClass, way: Way) async throws {
        let expected = try #require(Self.codePoints[serviceClass])
        let option: SocketOption = way == .ipv6 ? .ipv6TrafficClass : .ipTypeOfService
        let ends = try await bothEnds(
            on: way.listener, from: way.client, Parameters().serviceClass(serviceClass)
        ) { connection in [try connection.value(of: option), try connection.value(of: .priority)] }
        #expect(ends == .both([expected.dscp << 2, expected.priority]))
    }

    @Test("of UDP too", arguments: [Endpoint.loopback(), .loopback6()])
    func serviceClassOfUDP(endpoint: Endpoint) async throws {
        let client = Connection(
            to: .hostPort(host: try #require(endpoint.host), port: 9),
            parameters: Parameters().serviceClass(.interactiveVoice)
        ) { UDP() }
        try await client.start()
        let option: SocketOption =
            endpoint == .loopback() ? .ipTypeOfService : .ipv6TrafficClass
        #expect(try client.value(of: option) == 46 << 2)
        #expect(try client.value(of: .priority) == 6)
    }

    // MARK: Hop limit

    @Test("a hop limit is set on both sides", arguments: Way.allCases)
    func hopLimit(way: Way) async throws {
        for limit in [1, 9, 255] {
            let option: SocketOption = way == .ipv6 ? .ipv6Hops : .ipTimeToLive
            let ends = try await bothEnds(
                of: option, on: way.listener, from: way.client, Parameters().hopLimit(limit))
            #expect(ends == .both(Int32(limit)))
        }
    }

    @Test("one out of range fails", arguments: [0, 256, -1, .max, .min], Way.allCases)
    func hopLimitRange(limit: Int, way: Way) async throws {
        let parameters = Parameters().hopLimit(limit)
        let listening = try await #require(throws: NetworkError.self) {
            _ = try await Listener(on: way.listener, parameters: parameters) { TCP() }
        }
        let connecting = try await #require(throws: NetworkError.self) {
            try await Connection(to: way.client, parameters: parameters) { TCP() }.start()
        }
        for error in [listening, connecting] {
            #expect(error.code == .optionFailed)
            #expect(error.message.contains("hopLimit \(limit)"))
            #expect(error.message.contains("1 to 255"))
        }
    }

    // MARK: Interface, mark, buffers

    @Test("a required interface binds both sides to it")
    func interface() async throws {
        let ends = try await bothEnds(on: .port(0), Parameters().requiredInterface("lo")) {
            try $0.withSocket { socket throws(SystemError) in try socket.boundInterface() }
        }
        #expect(ends == .both("lo"))
        let free = try await bothEnds {
            try $0.withSocket { socket throws(SystemError) in try socket.boundInterface() }
        }
        #expect(free == .both(""))
    }

    @Test(
        "one that is not there is named in the error",
        arguments: ["nosuch0", "", "a-name-longer-than-15-bytes"])
    func noInterface(name: String) async throws {
        let parameters = Parameters().requiredInterface(name)
        let listening = try await #require(throws: NetworkError.self) {
            _ = try await Listener(on: .loopback(), parameters: parameters) { TCP() }
        }
        let connecting = try await #require(throws: NetworkError.self) {
            let hasty = parameters.waitsForConnectivity(false)
            try await Connection(to: .loopback(9), parameters: hasty) { TCP() }.start()
        }
        for error in [listening, connecting] {
            #expect(error.code == .optionFailed)
            #expect(error.message.contains("interface \(name)"))
        }
    }

    @Test("a mark is set on both sides", .enabled(if: isRoot, "needs root"))
    func mark() async throws {
        for mark in [7, 0xFFFF_FFFF] as [UInt32] {
            let ends = try await bothEnds(of: .mark, Parameters().mark(mark))
            #expect(ends == .both(Int32(bitPattern: mark)))
        }
    }

    @Test("a mark without the right to it fails", .enabled(if: !isRoot, "for an ordinary user"))
    func markNotPermitted() async throws {
        let error = try await #require(throws: NetworkError.self) {
            _ = try await Listener(on: .loopback(), parameters: Parameters().mark(7)) { TCP() }
        }
        #expect(error.code == .optionFailed)
        #expect(error.message.contains("SO_MARK"))
    }

    @Test("the sizes of the buffers are set on both sides; the kernel doubles them")
    func buffers() async throws {
        let parameters = Parameters().sendBufferSize(20_000).receiveBufferSize(30_000)
        #expect(try await bothEnds(of: .sendBuffer, parameters) == .both(40_000))
        #expect(try await bothEnds(of: .receiveBuffer, parameters) == .both(60_000))
    }

    @Test("a buffer larger than the host allows fails, and says what to raise")
    func bufferTooLarge() async throws {
        let allowed = systemSetting("net/core/wmem_max")
        for parameters in [
            Parameters().sendBufferSize(allowed + 1), Parameters().sendBufferSize(.max),
            Parameters().receiveBufferSize(systemSetting("net/core/rmem_max") + 1),
            Parameters().receiveBufferSize(.max),
        ] {
            let error = try await #require(throws: NetworkError.self) {
                _ = try await Listener(on: .loopback(), parameters: parameters) { TCP() }
            }
            #expect(error.code == .optionFailed)
            #expect(error.message.contains("BUF = "))
            #expect(error.message.contains("raise net.core."))
        }
    }

    @Test("a buffer of no size fails", arguments: [0, -1, .min])
    func bufferTooSmall(size: Int) async throws {
        for parameters in [Parameters().sendBufferSize(size), Parameters().receiveBufferSize(size)]
        {
            let error = try await #require(throws: NetworkError.self) {
                _ = try await Listener(on: .loopback(), parameters: parameters) { TCP() }
            }
            #expect(error.code == .optionFailed)
            #expect(error.message.contains("BUF = \(size)"))
        }
    }
}
