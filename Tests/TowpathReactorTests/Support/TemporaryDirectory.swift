import CTowpathLinux
import Glibc
import TowpathReactor

/// A directory for the body alone, empty at first and gone afterwards.
func withTemporaryDirectory<Value>(_ body: (String) throws -> Value) throws -> Value {
    var template = Array("/tmp/towpath-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw SystemError(errno, "mkdtemp") }
    let path = String(decoding: template.dropLast().map(UInt8.init), as: UTF8.self)
    defer { removeFiles(in: path) }
    return try body(path)
}

/// Makes a file with these bytes.
func writeFile(_ path: String, _ bytes: [UInt8]) throws {
    let file = Descriptor(owning: open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600))
    guard write(file.number, bytes, bytes.count) == bytes.count else {
        throw SystemError(errno, "write")
    }
}

private func removeFiles(in path: String) {
    if let directory = opendir(path) {
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            unlink(path + "/" + name)
        }
        closedir(directory)
    }
    rmdir(path)
}
