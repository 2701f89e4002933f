import Testing
import Towpath
import TowpathReactor

@Suite("The options of TCP", .timeLimit(.minutes(1)))
struct OptionsTCPTests {
    @Test("noDelay is on unless switched off")
    func noDelay() async throws {
        #expect(try await bothEnds(of: .noDelay) == .both(1))
        #expect(try await bothEnds(of: .noDelay, Parameters(), TCP().noDelay(false)) == .both(0))
        #expect(try await bothEnds(of: .noDelay, Parameters(), TCP().noDelay(true)) == .both(1))
    }

    @Test("keep-alive is off unless asked for")
    func noKeepalive() async throws {
        #expect(try await bothEnds(of: .keepAlive) == .both(0))
    }

    private static func keepalive(_ tcp: TCP) async throws -> BothEnds<[Int32]> {
        try await bothEnds(Parameters(), tcp) { connection in
            try [.keepAlive, .keepIdle, .keepInterval, .keepCount].map {
                try connection.value(of: $0)
            }
        }
    }

    @Test("keep-alive has its idle time, interval and count")
    func keepalive() async throws {
        let ends = try await Self.keepalive(
            TCP().keepalive(idle: .seconds(60), interval: .seconds(7), count: 3))
        #expect(ends == .both([1, 60, 7, 3]))
    }

    @Test("what keep-alive is not told is the host's")
    func keepaliveOfTheHost() async throws {
        let host = [
            systemSetting("net/ipv4/tcp_keepalive_intvl"),
            systemSetting("net/ipv4/tcp_keepalive_probes"),
        ].map { Int32($0) }
        let ends = try await Self.keepalive(TCP().keepalive(idle: .seconds(60)))
        #expect(ends == .both([1, 60] + host))
    }

    @Test("keep-alive counts whole seconds, and rounds up")
    func keepaliveFractions() async throws {
        let ends = try await Self.keepalive(
            TCP().keepalive(idle: .milliseconds(1), interval: .milliseconds(2_001), count: 127))
        #expect(ends == .both([1, 1, 3, 127]))
    }

    struct Refused: CustomTestStringConvertible {
        let name: String
        let tcp: TCP

        init(_ name: String, _ tcp: TCP) {
            self.name = name
            self.tcp = tcp
        }

        var testDescription: String { name }
    }

    static let refused = [
        Refused("TCP_KEEPIDLE = 0", TCP().keepalive(idle: .zero)),
        Refused("TCP_KEEPIDLE = 0", TCP().keepalive(idle: .seconds(-1))),
        Refused("TCP_KEEPIDLE = 32768", TCP().keepalive(idle: .seconds(32_768))),
        Refused("TCP_KEEPIDLE = 2147483647", TCP().keepalive(idle: .seconds(Int64.max))),
        Refused("TCP_KEEPINTVL = 0", TCP().keepalive(idle: .seconds(1), interval: .zero)),
        Refused("TCP_KEEPCNT = 0", TCP().keepalive(idle: .seconds(1), count: 0)),
        Refused("TCP_KEEPCNT = 128", TCP().keepalive(idle: .seconds(1), count: 128)),
        Refused("TCP_KEEPCNT = 2147483647", TCP().keepalive(idle: .seconds(1), count: .max)),
        Refused("TCP_MAXSEG = 1", TCP().maximumSegmentSize(1)),
        Refused("TCP_MAXSEG = 2147483647", TCP().maximumSegmentSize(.max)),
        Refused("maximumSegmentSize 0", TCP().maximumSegmentSize(0)),
        Refused("userTimeout 0.0", TCP().userTimeout(.zero)),
        Refused("userTimeout -", TCP().userTimeout(.seconds(-1))),
        Refused("notSentLowWaterMark 0", TCP().notSentLowWaterMark(0)),
        Refused("notSentLowWaterMark -1", TCP().notSentLowWaterMark(-1)),
    ]

    @Test("a value that the kernel refuses fails, and is named", arguments: refused)
    func refusal(option: Refused) async throws {
        let listening = try await #require(throws: NetworkError.self) {
            _ = try await Listener(on: .loopback()) { option.tcp }
        }
        let listener = try await Listener(on: .loopback()) { TCP() }
        let connecting = try await #require(throws: NetworkError.self) {
            try await listener.client(option.tcp).start()
        }
        for error in [listening, connecting] {
            #expect(error.code == .optionFailed)
            #expect(error.stage == .setup)
            #expect(error.message.contains(option.name))
        }
    }

    @Test(
        "the user timeout counts whole milliseconds, and rounds up",
        arguments: [
            (Duration.seconds(5), Int32(5_000)), (.milliseconds(1), 1), (.microseconds(1), 1),
            (.microseconds(2_001), 3), (.seconds(Int64.max), .max),
        ])
    func userTimeout(limit: Duration, milliseconds: Int32) async throws {
        let ends = try await bothEnds(of: .userTimeout, Parameters(), TCP().userTimeout(limit))
        #expect(ends == .both(milliseconds))
    }

    @Test("no user timeout is the host's")
    func noUserTimeout() async throws {
        #expect(try await bothEnds(of: .userTimeout) == .both(0))
    }

    @Test("the maximum segment size bounds what both sides send")
    func maximumSegmentSize() async throws {
        let tcp = TCP().maximumSegmentSize(1_000)
        let ends = try await bothEnds(Parameters(), tcp) { connection in
            try connection.transferReport().maximumSegmentSize
        }
        #expect((500...1_000).contains(ends.client))
        #expect((500...1_000).contains(ends.accepted))
        // Time stamps take 12 bytes of each.
        let free = try await bothEnds { try $0.transferReport().maximumSegmentSize }
        #expect(free.client > 1_000)
    }

    @Test("the not-sent low-water mark is set, and the host's otherwise")
    func notSentLowWaterMark() async throws {
        let tcp = TCP().notSentLowWaterMark(16_384)
        #expect(try await bothEnds(of: .notSentLowWater, Parameters(), tcp) == .both(16_384))
    }

    @Test("behind the not-sent low-water mark a sender waits, though the buffer has room")
    func notSentLowWaterMarkHoldsBack() async throws {
        let listener = try PlainSocket.bound(to: .loopback())
        let client = Connection(
            to: .loopback(try listener.port), parameters: Parameters().sendBufferSize(1 << 20)
        ) { TCP().notSentLowWaterMark(8_192) }
        try await client.start()
        // Nobody reads: it must stop once the peer's window is full, with little unsent.
        await #expect(throws: NetworkError(.timedOut, .send, "")) {
            while true {
                try await client.send(
                    [UInt8](repeating: 0, count: 4_096), timeout: .milliseconds(100))
            }
        }
        let report = try client.transferReport()
        #expect(report.unsentByteCount < 200_000, "\(report.unsentByteCount) bytes are unsent")
    }

    // MARK: Fast open and multipath

    @Test("fast open is set on both kinds of socket, and off otherwise")
    func fastOpen() async throws {
        for (enabled, pending) in [(true, Int32(4_096)), (false, 0)] {
            let socket = try PlainSocket.bound(to: .loopback())
            let listener = try await Listener(adopting: socket.duplicate()) {
                TCP().fastOpen(enabled)
            }
            #expect(try socket.descriptor.get(.fastOpen) == pending)
            try await serving(listener, echo) {
                let client = listener.client(TCP().fastOpen(enabled))
                try await expectEcho(of: "fast", from: client)
                #expect(try client.value(of: .fastOpenConnect) == (enabled ? 1 : 0))
            }
        }
    }

    static var hasMultipath: Bool {
        do { _ = try Descriptor.socket(.ipv4, .stream, multipath: true) } catch { return false }
        return true
    }

    /// IPPROTO_TCP and IPPROTO_MPTCP.
    private static let (tcp, mptcp) = (Int32(6), Int32(262))

    @Test("multipath TCP is used on both sides", .enabled(if: hasMultipath, "the kernel has none"))
    func multipath() async throws {
        let ends = try await bothEnds(
            of: .protocolNumber, Parameters(), TCP().multipath(true).keepalive(idle: .seconds(9)))
        #expect(ends == .both(Self.mptcp))
        #expect(try await bothEnds(of: .protocolNumber) == .both(Self.tcp))
    }

    @Test(
        "a multipath listener serves those who know only TCP, and the other way round",
        .enabled(if: hasMultipath, "the kernel has none"), arguments: [true, false])
    func multipathFallback(onListener: Bool) async throws {
        let listener = try await Listener(on: .loopback()) { TCP().multipath(onListener) }
        try await serving(listener, echo) {
            try await expectEcho(
                of: "fallback", from: listener.client(TCP().multipath(!onListener)))
        }
    }
}
