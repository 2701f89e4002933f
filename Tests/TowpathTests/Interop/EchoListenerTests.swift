import Foundation
import TestSupport
import Testing

@Suite(
    "echo-listener, as its users meet it", .enabled(if: Tool.isAvailable), .timeLimit(.minutes(2)))
struct EchoListenerTests {
    @Test(
        "a wrong command line ends with status 2 and one clear line",
        arguments: [
            ("", "nothing to listen on"),
            ("--tcp", "--tcp needs a value"),
            ("--tcp 70000", "port 70000 is out of range"),
            ("--tcp localhost:7", "localhost"),
            ("--udp unix:/x", "Unix sockets are for --unix"),
            ("--frobnicate", "unknown argument --frobnicate"),
            ("--tcp 0 --stats 0", "not a number from 1"),
            ("--tcp 0 --connection-limit many", "not a number from 1"),
        ])
    func usage(arguments: String, complaint: String) async throws {
        try await Tool.expectUsageError("exec $ECHO \(arguments)", complaint)
    }

    @Test("--help and --version print and end well")
    func help() async throws {
        let help = try await Tool.run("exec $ECHO --help")
        #expect(help.status == 0)
        #expect(help.output.contains("--idle-timeout SECONDS"))
        let version = try await Tool.run("exec $ECHO --version")
        #expect(version.status == 0)
        #expect(version.output == "echo-listener 0.1.0\n")
    }

    @Test("a port in use is named and ends with status 1")
    func portInUse() async throws {
        let first = try Tool.start("exec $ECHO --tcp 127.0.0.1:0")
        let address = try await boundAddress(first, "tcp ")
        let end = try await Tool.run("exec $ECHO --tcp \(address)")
        #expect(end.status == 1)
        #expect(end.errors.contains("cannot listen on \(address)"), "\(end)")
        #expect(end.errors.contains("in use"), "\(end)")
    }

    @Test(
        "socat and nc get everything back over TCP, UDP, a Unix path and an abstract name at once",
        .enabled(if: Program.has("socat") && Program.has("nc")))
    func everyTransport() async throws {
        let path = "/tmp/towpath-echo-\(getpid())"
        let server = try Tool.start(
            "exec $ECHO --tcp 127.0.0.1:0 --unix \(path) --unix @towpath-\(getpid())"
                + " --udp 127.0.0.1:0")
        let tcp = try await boundAddress(server, "tcp ")
        let unix = try await boundAddress(server, "")
        let abstract = try await boundAddress(server, "")
        let udp = try await boundAddress(server, "udp ")
        #expect(unix == "unix:\(path)")
        #expect(abstract == "unix:@towpath-\(getpid())")

        let port = tcp.split(separator: ":").last ?? ""
        #expect(try await Tool.run("echo over tcp | socat -t5 - TCP:\(tcp)").output == "over tcp\n")
        #expect(try await Tool.run("echo over udp | socat -t1 - UDP:\(udp)").output == "over udp\n")
        #expect(
            try await Tool.run("echo over unix | socat -t5 - UNIX:\(path)").output == "over unix\n")
        let name = "towpath-\(getpid())"
        #expect(
            try await Tool.run("echo over abstract | socat -t5 - ABSTRACT:\(name)").output
                == "over abstract\n")
        #expect(try await Tool.run("echo over nc | nc -N 127.0.0.1 \(port)").output == "over nc\n")
        let large = try await Tool.run(
            "head -c 5000000 /dev/zero | tr '\\0' x | nc -N 127.0.0.1 \(port) | tr -d x | wc -c;"
                + " head -c 5000000 /dev/zero | nc -N 127.0.0.1 \(port) | wc -c")
        #expect(large.output == "0\n5000000\n")

        server.signal(SIGTERM)
        #expect(try await server.end().status == 0)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test(
        "SIGINT and SIGTERM drain: an idle client is closed in good order and the status is 0",
        arguments: [SIGINT, SIGTERM])
    func drains(signal: Int32) async throws {
        let server = try Tool.start("exec $ECHO --tcp 127.0.0.1:0")
        let address = try await boundAddress(server, "tcp ")
        let client = try Tool.start(
            "exec 3<>/dev/tcp/\(address.replacing(":", with: "/")); echo hello >&3;"
                + " read -r reply <&3; echo \"$reply\"; read -r reply <&3; echo \"end $?\"")
        #expect(try await client.line() == "hello")
        server.signal(signal)
        // An end of the stream, not a reset, which bash would complain of.
        let end = try await client.end()
        #expect(end.output == "end 1\n")
        #expect(end.errors.isEmpty, "\(end)")
        #expect(try await server.end().status == 0)
    }

    @Test("--idle-timeout ends silent connections in good order")
    func idleTimeout() async throws {
        let server = try Tool.start("exec $ECHO --tcp 127.0.0.1:0 --idle-timeout 1")
        let address = try await boundAddress(server, "tcp ")
        let client = try await Tool.run(
            "exec 3<>/dev/tcp/\(address.replacing(":", with: "/")); read -r reply <&3; echo \"end $?\""
        )
        #expect(client.output == "end 1\n")
        #expect(client.errors.isEmpty, "\(client.errors)")
    }

    @Test("--stats prints connections, bytes and rates; --quiet prints nothing else")
    func statistics() async throws {
        let server = try Tool.start(
            "exec $ECHO --unix @towpath-stats-\(getpid()) --stats 1 --quiet")
        let line = try await server.line()
        #expect(line.hasPrefix("connections 0 now, 0 in all; received 0 B, sent 0 B"), "\(line)")
        #expect(line.hasSuffix("0 B/s out"), "\(line)")
        server.signal(SIGTERM)
        #expect(try await server.end().status == 0)
    }

    @Test("BR-008: an idle listener does not wake up, also after it was stopped and continued")
    func idle() async throws {
        let server = try Tool.start("exec $ECHO --tcp 127.0.0.1:0 --udp 127.0.0.1:0")
        let address = try await boundAddress(server, "tcp ")
        _ = try await boundAddress(server, "udp ")
        let client = try Tool.start(
            "exec 3<>/dev/tcp/\(address.replacing(":", with: "/")); echo hello >&3;"
                + " read -r reply <&3; echo \"$reply\"; read -r reply <&3")
        #expect(try await client.line() == "hello")
        server.signal(SIGSTOP)
        server.signal(SIGCONT)
        // Measured over three seconds, from one second after the last traffic.
        let script = """
            switches() { cat /proc/\(server.processID)/task/*/status | grep ^voluntary; }
            pass() { read -r -t "$1" <> <(:); }
            pass 1; before=$(switches); pass 3; after=$(switches)
            [ "$before" = "$after" ] && echo idle || echo "$before" became "$after"
            """
        #expect(try await Tool.run(script).output == "idle\n")
        server.signal(SIGTERM)
        #expect(try await server.end().status == 0)
    }

    @Test(
        "BR-004: out of descriptors it tells once, stays idle, and accepts again when some are freed"
    )
    func exhausted() async throws {
        // Without what other tests let their children have.
        let server = try Tool.start(
            "for n in {3..39}; do eval \"exec $n>&-\"; done; ulimit -n 40;"
                + " exec $ECHO --tcp 127.0.0.1:0")
        let address = try await boundAddress(server, "tcp ")
        // 60 clients, of whom some wait; measured over two seconds of it; then 30 go and the others are
        // answered.
        let clients = try await Tool.run(
            """
            python3 - <<'END'
            import select, socket
            host, port = "\(address)".split(":")
            clients = [socket.create_connection((host, int(port))) for _ in range(60)]
            ticks = lambda: sum(int(x) for x in
                                open("/proc/\(server.processID)/stat").read().split()[13:15])
            passing = lambda seconds: select.select([], [], [], seconds)
            passing(1); before = ticks(); passing(2)
            print("busy" if ticks() - before > 20 else "idle")
            for client in clients[:30]: client.close()
            answered = 0
            for client in clients[30:]:
                client.settimeout(10); client.sendall(b"x"); answered += client.recv(9) == b"x"
            print(answered)
            END
            """)
        #expect(clients.output == "idle\n30\n", "\(clients)")
        server.signal(SIGTERM)
        let end = try await server.end()
        #expect(end.status == 0)
        #expect(end.errors.components(separatedBy: "no descriptors are left").count == 2, "\(end)")
        #expect(end.errors.components(separatedBy: "accepted again").count == 2, "\(end)")
    }

    /// Reads the line that tells an address.
    private func boundAddress(_ server: Program, _ transport: String) async throws -> String {
        let line = try await server.line()
        let prefix = "listening on \(transport)"
        guard line.hasPrefix(prefix) else {
            throw Program.Failure(description: "not an address: \(line)")
        }
        return String(line.dropFirst(prefix.count))
    }
}
