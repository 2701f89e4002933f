internal import TowpathReactor

/// A file on its way into a socket: sendfile(2), from the page cache without passing user space.
///
/// It runs on the blocking pool, since it reads disks and can raise SIGPIPE. The socket is a duplicate:
/// the connection may be closed while a thread uses it.
final class FileTransfer: Sendable {
    let size: Int
    private let file: Descriptor
    private let socket: Descriptor

    /// Blocks as long as the file's disk or server takes.
    init(_ path: String, to socket: consuming Descriptor) throws(SystemError) {
        self.socket = socket
        file = try .openFile(path)
        size = try file.fileSize()
    }

    /// A part of the file.
    func read(from offset: Int, count: Int) -> Result<[UInt8], NetworkError> {
        do throws(SystemError) { return .success(try file.read(from: offset, count: count)) } catch
        {
            return .failure(NetworkError(error, .send, "file not read"))
        }
    }

    func send(from offset: Int, count: Int) -> Transfer {
        socket.sendFile(file, from: offset, count: count)
    }
}
