import CTowpathLinux
import Testing
import TowpathReactor

@Suite("File")
struct FileTests {
    @Test("a regular file is opened with its size")
    func regular() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/file"
            try writeFile(path, [1, 2, 3])
            let file = try Descriptor.openFile(path)
            #expect(try file.fileSize() == 3)
        }
    }

    @Test("what is no regular file, or not there, is not opened")
    func others() throws {
        #expect(throws: SystemError(EINVAL, "open")) { _ = try Descriptor.openFile("/dev/null") }
        #expect(throws: SystemError(EINVAL, "open")) { _ = try Descriptor.openFile("/tmp") }
        #expect(throws: SystemError(ENOENT, "open")) {
            _ = try Descriptor.openFile("/no/such/file")
        }
    }

    @Test("a pipe without a writer does not hold the thread")
    func pipe() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/pipe"
            #expect(mkfifo(path, 0o600) == 0)
            #expect(throws: SystemError(EINVAL, "open")) { _ = try Descriptor.openFile(path) }
        }
    }
}
