import CTowpathLinux
import Glibc
import Testing
import TowpathReactor

@Suite("Unix socket file")
struct UnixSocketFileTests {
    private struct Place {
        let path: String
        let address: SocketAddress

        init(_ directory: String) throws {
            path = directory + "/socket"
            address = try #require(
                SocketAddress(unix: Array((directory + "/socket").utf8), abstract: false))
        }

        func bind(
            _ socket: borrowing Descriptor, mode: UInt32? = nil
        ) throws(SystemError) -> UnixSocketFile {
            try UnixSocketFile(binding: socket, to: address, path: path, mode: mode)
        }

        var exists: Bool { identity != nil }

        var identity: UInt64? {
            var found = shim_identity()
            return shim_identify(path, &found) == 0 ? found.inode : nil
        }
    }

    private func withPlace(_ body: (Place) throws -> Void) throws {
        try withTemporaryDirectory { try body(try Place($0)) }
    }

    @Test("the file is there with the socket and goes when it is removed, once")
    func remove() throws {
        try withPlace { place in
            let socket = try Descriptor.socket(.unix, .stream)
            let file = try place.bind(socket)
            #expect(place.exists)
            file.remove()
            #expect(!place.exists)
            let other = try Descriptor.socket(.unix, .stream)
            let otherFile = try place.bind(other)
            file.remove()
            #expect(place.exists)
            otherFile.remove()
            #expect(!place.exists)
        }
    }

    @Test("a file that became another's is left alone")
    func foreign() throws {
        try withPlace { place in
            let socket = try Descriptor.socket(.unix, .stream)
            let file = try place.bind(socket)
            // The new file is made beside the old one: it must not get the old one's inode.
            let other = place.path + "-other"
            try writeFile(other, [1])
            #expect(rename(other, place.path) == 0)
            file.remove()
            #expect(place.exists)
        }
    }

    @Test("a stale socket's file is replaced")
    func stale() throws {
        try withPlace { place in
            do {
                let dead = try Descriptor.socket(.unix, .stream)
                _ = try place.bind(dead)
            }
            #expect(place.exists)
            let socket = try Descriptor.socket(.unix, .stream)
            let file = try place.bind(socket)
            try socket.listen(backlog: 1)
            let client = try Descriptor.socket(.unix, .stream)
            #expect(client.connect(to: place.address) == .done(0))
            file.remove()
        }
    }

    @Test("a live listener's file is not replaced, even if its queue is full", arguments: [0, 8])
    func live(backlog: Int32) throws {
        try withPlace { place in
            let listener = try Descriptor.socket(.unix, .stream)
            let file = try place.bind(listener)
            try listener.listen(backlog: backlog)
            let client = try Descriptor.socket(.unix, .stream)
            #expect(client.connect(to: place.address) == .done(0))
            let before = place.identity
            let second = try Descriptor.socket(.unix, .stream)
            #expect(throws: SystemError(EADDRINUSE, "bind")) { _ = try place.bind(second) }
            #expect(place.identity == before)
            file.remove()
        }
    }

    @Test("what is no socket is not replaced")
    func regularFile() throws {
        try withPlace { place in
            try writeFile(place.path, [1])
            let socket = try Descriptor.socket(.unix, .stream)
            #expect(throws: SystemError(EADDRINUSE, "bind")) { _ = try place.bind(socket) }
            #expect(place.exists)
        }
    }

    @Test("the file has the mode asked for, whatever the umask", arguments: [0o600, 0o660, 0o666])
    func mode(_ mode: UInt32) throws {
        try withPlace { place in
            let socket = try Descriptor.socket(.unix, .stream)
            let file = try place.bind(socket, mode: mode)
            var status = stat()
            #expect(lstat(place.path, &status) == 0)
            #expect(status.st_mode & 0o777 == mode)
            file.remove()
        }
    }

    @Test("a directory that is not there is an error")
    func noDirectory() throws {
        let place = try Place("/no/such/directory")
        let socket = try Descriptor.socket(.unix, .stream)
        #expect(throws: SystemError(ENOENT, "bind")) { _ = try place.bind(socket) }
    }
}
