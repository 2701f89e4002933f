import Glibc
import TestSupport
import TowpathReactor

/// A folder for the body alone, empty at first and gone afterwards.
func withFolder<Value>(_ body: (String) async throws -> Value) async throws -> Value {
    var template = Array("/tmp/towpath-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw SystemError(errno, "mkdtemp") }
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer {
        for name in entries(of: path) where !name.hasPrefix(".") { unlink("\(path)/\(name)") }
        rmdir(path)
    }
    return try await body(path)
}

/// The names in a folder; none if it cannot be read.
func entries(of path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
        names.append(
            withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            })
    }
    return names
}

/// Leaves a socket file to which nobody listens.
func makeStaleSocket(_ path: String) {
    guard let address = SocketAddress(unix: Array(path.utf8), abstract: false) else { return }
    _ = try? PlainSocket.bound(to: address)
}

/// The device and number of a file; nil if there is none.
func identity(of path: String) -> [UInt64]? {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    // A number is used again at once: the time tells them apart.
    return [
        UInt64(status.st_dev), UInt64(status.st_ino), UInt64(status.st_ctim.tv_sec),
        UInt64(status.st_ctim.tv_nsec),
    ]
}

/// The permissions of a file; nil if there is none.
func permissions(of path: String) -> UInt32? {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : nil
}

/// A thread that runs a body that would hold up others.
final class Watching: Sendable {
    private let ended = Inbox<Void>()

    init(_ body: @escaping @Sendable () -> Void) {
        let ended = ended
        let work = Unmanaged.passRetained(
            Work {
                body()
                ended.send()
            })
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            }, work.toOpaque())
        pthread_detach(thread)
    }

    func end() async { try? await ended.next() }

    private final class Work: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
}
