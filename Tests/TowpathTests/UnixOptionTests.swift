import TestSupport
import Testing
import Towpath
import TowpathReactor

@Suite("Options on Unix sockets", .timeLimit(.minutes(1)))
struct UnixOptionTests {
    struct TCPOption: CustomTestStringConvertible {
        let name: String
        let tcp: TCP

        var testDescription: String { name }
    }

    static let optionsOfTCP = [
        TCPOption(name: "noDelay", tcp: TCP().noDelay(true)),
        TCPOption(name: "keepalive", tcp: TCP().keepalive(idle: .seconds(60))),
        TCPOption(name: "userTimeout", tcp: TCP().userTimeout(.seconds(1))),
        TCPOption(name: "fastOpen", tcp: TCP().fastOpen(true)),
        TCPOption(name: "maximumSegmentSize", tcp: TCP().maximumSegmentSize(1_000)),
        TCPOption(name: "notSentLowWaterMark", tcp: TCP().notSentLowWaterMark(1_000)),
        TCPOption(name: "multipath", tcp: TCP().multipath(true)),
    ]

    @Test("an option of TCP is refused by name", arguments: optionsOfTCP)
    func tcp(option: TCPOption) async throws {
        let listening = try await #require(throws: NetworkError.self) {
            _ = try await Listener(on: .ownName("option")) { option.tcp }
        }
        let listener = try await Listener(on: .ownName("option")) { TCP() }
        let connecting = try await #require(throws: NetworkError.self) {
            try await listener.client(option.tcp).start()
        }
        for error in [listening, connecting] {
            #expect(error.code == .optionFailed)
            #expect(error.message.contains(option.name))
            #expect(error.message.contains("Unix"))
        }
    }

    struct PathOption: CustomTestStringConvertible {
        let name: String
        let parameters: Parameters

        var testDescription: String { name }
    }

    static let optionsOfIP = [
        PathOption(name: "hopLimit", parameters: Parameters().hopLimit(4)),
        PathOption(name: "serviceClass", parameters: Parameters().serviceClass(.background)),
        PathOption(name: "ipv6Only", parameters: Parameters().ipv6Only(true)),
        PathOption(name: "requiredInterface", parameters: Parameters().requiredInterface("lo")),
        PathOption(name: "ipVersion", parameters: Parameters().ipVersion(.ipv4)),
        PathOption(name: "SO_REUSEPORT", parameters: Parameters().portReuse(true)),
    ]

    @Test("an option of IP is refused by name", arguments: optionsOfIP)
    func ip(option: PathOption) async throws {
        let listening = try await #require(throws: NetworkError.self) {
            _ = try await Listener(on: .ownName("option"), parameters: option.parameters) { TCP() }
        }
        let listener = try await Listener(on: .ownName("option")) { TCP() }
        let connecting = try await #require(throws: NetworkError.self) {
            try await listener.client(parameters: option.parameters).start()
        }
        for error in [listening, connecting] {
            #expect(error.code == .optionFailed)
            #expect(error.message.contains(option.name))
        }
    }

    @Test("the sizes of the buffers have their effect, on the accepted side's too")
    func buffers() async throws {
        let parameters = Parameters().sendBufferSize(20_000).receiveBufferSize(30_000)
        let listener = try await Listener(on: .ownName("option"), parameters: parameters) { TCP() }
        let accepted = Inbox<Int32>()
        try await serving(listener) { connection in
            accepted.send(try connection.value(of: .sendBuffer))
            try await echo(connection)
        } while: {
            let client = listener.client(parameters: parameters)
            try await client.start()
            #expect(try client.value(of: .sendBuffer) == 40_000)
            #expect(try client.value(of: .receiveBuffer) == 60_000)
            let size = try await accepted.next()
            #expect(size == 40_000)
        }
    }

    @Test("a mode is for listeners on a path")
    func modeWithoutFile() async throws {
        let parameters = Parameters().unixSocketMode(0o600)
        for endpoint in [Endpoint.loopback(), .ownName("mode")] {
            let error = try await #require(throws: NetworkError.self) {
                _ = try await Listener(on: endpoint, parameters: parameters) { TCP() }
            }
            #expect(error.code == .optionFailed)
            #expect(error.message.contains("unixSocketMode"))
        }
        let listener = try await Listener(on: .loopback()) { TCP() }
        let error = try await #require(throws: NetworkError.self) {
            try await listener.client(parameters: parameters).start()
        }
        #expect(error.code == .optionFailed)
        #expect(error.message.contains("unixSocketMode"))
    }
}
