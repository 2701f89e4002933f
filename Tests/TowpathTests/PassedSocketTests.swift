import Glibc
import Testing
import Towpath
import TowpathReactor

@Suite("Sockets passed by a service manager", .timeLimit(.minutes(2)))
struct PassedSocketTests {
    struct Passed: Equatable {
        let name: String
        let descriptor: Int32

        init(_ name: String, _ descriptor: Int32) {
            self.name = name
            self.descriptor = descriptor
        }
    }

    struct Sample: CustomTestStringConvertible {
        var count: String? = "2"
        var process: String? = "42"
        var names: String?
        var result: [Passed] = []

        var testDescription: String {
            "\(count ?? "-") for \(process ?? "-"), \(names ?? "-")"
        }
    }

    static let samples = [
        Sample(count: nil, process: nil),
        Sample(count: nil),
        Sample(process: nil),
        Sample(count: "0"),
        Sample(count: "1", result: [Passed("unknown", 3)]),
        Sample(result: [Passed("unknown", 3), Passed("unknown", 4)]),
        Sample(names: "web:admin", result: [Passed("web", 3), Passed("admin", 4)]),
        Sample(names: "web:", result: [Passed("web", 3), Passed("", 4)]),
        Sample(names: ":", result: [Passed("", 3), Passed("", 4)]),
        Sample(count: "1", names: "", result: [Passed("", 3)]),
        // For a parent, whose environment was inherited: also when it makes no sense for this one.
        Sample(process: "41"),
        Sample(process: "41", names: "web"),
        Sample(process: "1"),
    ]

    @Test("what the environment says", arguments: samples)
    func parsing(sample: Sample) throws {
        let sockets = try PassedSocket.parse(
            count: sample.count, process: sample.process, names: sample.names, ownProcess: 42)
        #expect(sockets.map { Passed($0.name, $0.descriptor) } == sample.result)
    }

    @Test(
        "what makes no sense is an error that quotes it",
        arguments: [
            Sample(count: "two"), Sample(count: ""), Sample(count: "-1"), Sample(count: "65537"),
            Sample(count: "99999999999999999999"), Sample(count: "2 "), Sample(process: "me"),
            Sample(process: ""), Sample(process: "4294967338"), Sample(names: "web"),
            Sample(names: "web:admin:more"), Sample(count: "0", names: "web"),
        ])
    func nonsense(sample: Sample) throws {
        let error = try #require(throws: NetworkError.self) {
            try PassedSocket.parse(
                count: sample.count, process: sample.process, names: sample.names, ownProcess: 42)
        }
        #expect(error.code == .invalidEndpoint)
        #expect(error.message.contains("LISTEN_"))
    }

    @Test("this process was given none")
    func none() throws {
        #expect(try PassedSocket.all().isEmpty)
    }

    @Test("a listener serves the socket that a process was given")
    func endToEnd() async {
        await #expect(processExitsWith: .success) {
            OwnProcess.guardAgainstHanging()
            // As the service manager does: in this process, before anything looks at it. The numbers
            // begin at 3, and what has them already here is counted as passed as well.
            let socket = try PlainSocket.bound(to: .loopback())
            let number = try socket.duplicate()
            let count = number - 2
            let names = (3...number).map { $0 == number ? "echo" : "other" }
            setenv("LISTEN_PID", "\(getpid())", 1)
            setenv("LISTEN_FDS", "\(count)", 1)
            setenv("LISTEN_FDNAMES", names.joined(separator: ":"), 1)
            let passed = try #require(try PassedSocket.all().first { $0.name == "echo" })
            #expect(passed.descriptor == number)
            let listener = try await Listener(adopting: passed.descriptor) { TCP() }
            #expect(listener.localEndpoint == .loopback(try socket.port))
            try await serving(listener, echo) {
                try await expectEcho(of: "passed", from: listener.client())
            }
            setenv("LISTEN_PID", "1", 1)
            #expect(try PassedSocket.all().isEmpty)
        }
    }
}
