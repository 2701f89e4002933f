import TestSupport
import Testing
import Towpath

@Suite(
    "TLS with Python", .enabled(if: TLSFiles.areAvailable && Program.has("python3")),
    .timeLimit(.minutes(2)))
struct TLSPythonTests {
    private func python(_ files: TLSFiles, _ version: TLSVersion, _ script: String) throws
        -> Program
    {
        try files.start(
            """
            exec python3 - <<'END'
            import random, select, socket, ssl
            version = ssl.TLSVersion.\(version == .tls12 ? "TLSv1_2" : "TLSv1_3")
            def context(side):
                made = ssl.SSLContext(side)
                made.minimum_version = made.maximum_version = version
                return made
            \(script)
            END
            """)
    }

    @Test(
        "Python's client gets 5 MB back, both ways at once, and its end is an orderly one",
        arguments: TLSVersion.all)
    func echoes(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let service = try await TLSService(TLS(identity: try files.identity("server")))
        try await service.echoing {
            let client = try python(
                files, version,
                """
                ours = context(ssl.PROTOCOL_TLS_CLIENT)
                ours.load_verify_locations("root.pem")
                plain = socket.create_connection(("127.0.0.1", \(service.listener.port)))
                peer = ours.wrap_socket(plain, server_hostname="localhost")
                data, sent, received = random.Random(1).randbytes(5_000_000), 0, bytearray()
                peer.setblocking(False)
                while len(received) < len(data):
                    want = ([peer], [])
                    try:
                        while sent < len(data): sent += peer.send(data[sent:sent + 50_000])
                    except ssl.SSLWantWriteError: want = ([peer], [peer])
                    except ssl.SSLWantReadError: pass
                    try:
                        while True:
                            chunk = peer.recv(100_000)
                            if not chunk: raise SystemExit("it ended early")
                            received += chunk
                            if len(received) == len(data): break
                    except ssl.SSLWantReadError: pass
                    except ssl.SSLWantWriteError: want = ([peer], [peer])
                    if len(received) < len(data): select.select(*want, [])
                peer.setblocking(True)
                print(peer.version(), "equal" if received == data else "different")
                peer.unwrap()
                print("orderly")
                """)
            let end = try await client.end()
            #expect(end.output == "\(version.name) equal\norderly\n", "\(end)")
        }
        #expect(service.listener.connectionCount == 0)
    }

    /// A server that accepts one client, and then does what the script says.
    private func server(
        _ files: TLSFiles, _ version: TLSVersion, _ script: String
    ) async throws -> (Program, Connection<TLS>) {
        let program = try python(
            files, version,
            """
            ours = context(ssl.PROTOCOL_TLS_SERVER)
            ours.load_cert_chain("server.pem", "server.key")
            listening = socket.create_server(("127.0.0.1", 0))
            print(listening.getsockname()[1], flush=True)
            peer = ours.wrap_socket(listening.accept()[0], server_side=True)
            \(script)
            """)
        guard let port = UInt16(try await program.line()) else {
            throw Program.Failure(description: "no port")
        }
        let root = try files.certificates("root")
        let connection = Connection(to: .loopback(port)) {
            TLS().trust(anchors: root).serverName("localhost")
        }
        return (program, connection)
    }

    @Test(
        "an end without the closing alert is no end of the stream, but what came before is there",
        arguments: TLSVersion.all)
    func abrupt(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let (program, connection) = try await server(
            files, version, "print(peer.recv(9)); peer.sendall(b'partial'); peer.close()")
        try await connection.send("hello".utf8)
        #expect(try await connection.receive(exactly: 7) == Array("partial".utf8))
        let error = await Streams.failure { try await connection.receive() }
        #expect(error?.code == .truncated && error?.stage == .receive)
        #expect(try await program.end().output == "b'hello'\n")
    }

    @Test(
        "the closing alert is the end of the stream, and ours is Python's",
        arguments: TLSVersion.all)
    func orderly(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let (program, connection) = try await server(
            files, version,
            "print(peer.recv(9)); peer.sendall(b'whole'); peer.unwrap(); print('orderly')")
        try await connection.send("hello".utf8)
        #expect(try await connection.receive(exactly: 5) == Array("whole".utf8))
        #expect(try await connection.receive() == nil)
        await connection.close()
        let end = try await program.end()
        #expect(end.output == "b'hello'\norderly\n", "\(end)")
    }

    @Test("closing on our side is an end of the stream for Python", arguments: TLSVersion.all)
    func closes(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let (program, connection) = try await server(
            files, version, "print(peer.recv(9), peer.recv(9)); peer.unwrap(); print('orderly')")
        try await connection.send("hello".utf8)
        await connection.close()
        let end = try await program.end()
        #expect(end.output == "b'hello' b''\norderly\n", "\(end)")
    }

    @Test(
        "the end of our sending is told alone: Python's answer still comes",
        arguments: TLSVersion.all)
    func halfClosed(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let (program, connection) = try await server(
            files, version,
            """
            print(peer.recv(9), peer.recv(9))
            peer.sendall(b'x' * 1_000_000); peer.unwrap(); print('orderly')
            """)
        try await connection.send("hello".utf8)
        try await connection.finish()
        var count = 0
        for try await chunk in connection.chunks { count += chunk.count }
        #expect(count == 1_000_000)
        await connection.close()
        let end = try await program.end()
        #expect(end.output == "b'hello' b''\norderly\n", "\(end)")
    }

    @Test("what was agreed on is what Python says", arguments: TLSVersion.all)
    func agreed(version: TLSVersion) async throws {
        let files = try await TLSFiles.get()
        let (program, connection) = try await server(
            files, version,
            "print(peer.cipher()[0], peer.version(), peer.selected_alpn_protocol(), flush=True);"
                + " peer.recv(9); peer.unwrap()")
        try await connection.start()
        let peer = try #require(connection.tlsPeer)
        #expect(try await program.line() == "\(peer.cipherSuite) \(version.name) None")
        #expect(peer.version == version && peer.applicationProtocol == nil)
        await connection.close()
        #expect(try await program.end().status == 0)
    }
}
