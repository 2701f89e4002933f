internal import CTowpathLinux

/// Tells when a file changed, be it replaced or pointed elsewhere: inotify(7) on the directory of each
/// symlink on the way, since a watch on the file itself ends with its first replacement.
extension Descriptor {
    package static func inotify() throws(SystemError) -> Descriptor {
        Descriptor(owning: Int32(try check(shim_inotify(), "inotify_init1")))
    }

    /// Watches the directories on the way to a file; what is watched already stays so. Returns the names
    /// in them that matter.
    package func watchDirectories(to path: String) -> Set<String> {
        var names: Set<String> = []
        for hop in FileLinks.hops(of: path) {
            // Of a folder that is not there yet, the one it will come in.
            var path = hop
            while let slash = path.lastIndex(of: "/") {
                names.insert(String(path[path.index(after: slash)...]))
                path = slash == path.startIndex ? "/" : String(path[..<slash])
                if shim_inotify_watch(number, path) >= 0 || path == "/" { break }
            }
        }
        // A folder that went is told without a name.
        names.insert("")
        return names
    }

    /// The names of which something was told; nil where some were lost.
    package func changedNames() -> Set<String>? {
        var names: Set<String>? = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = shim_read(number, &buffer, buffer.count)
            guard count > 0 else { return names }
            var at = 0
            // struct inotify_event: wd, mask, cookie, len, each 32 bits, and then a name.
            while at + 16 <= count {
                let length = Int(Self.number(buffer, at + 12))
                let isOverflow = Self.number(buffer, at + 4) & UInt32(IN_Q_OVERFLOW) != 0
                let end = min(at + 16 + length, count)
                let name = String(
                    decoding: buffer[(at + 16)..<end].prefix { $0 != 0 }, as: UTF8.self)
                if isOverflow { names = nil } else { names?.insert(name) }
                at = end
            }
        }
    }

    private static func number(_ bytes: [UInt8], _ at: Int) -> UInt32 {
        (0..<4).reversed().reduce(0) { $0 << 8 | UInt32(bytes[at + $1]) }
    }
}

/// Symlinks and small files.
package enum FileLinks {
    /// The path itself and what each symlink leads to, to the file at the end or where one is missing.
    package static func hops(of path: String) -> [String] {
        var hops = [path]
        var buffer = [CChar](repeating: 0, count: 4_096)
        // As many as the kernel follows: path_resolution(7).
        while hops.count <= 40, let last = hops.last {
            let count = shim_readlink(last, &buffer, buffer.count)
            guard count > 0 else { break }
            let target = String(
                decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
            guard !target.hasPrefix("/") else {
                hops.append(target)
                continue
            }
            let directory = last.lastIndex(of: "/").map { last[...$0] } ?? "/"
            hops.append(directory + target)
        }
        return hops
    }

    package static func exists(_ path: String) -> Bool { shim_exists(path) != 0 }

    /// The beginning of a file, up to 1 MiB; nil if it cannot be read.
    package static func contents(of path: String) -> [UInt8]? {
        let number = shim_open_read(path)
        guard number >= 0 else { return nil }
        let file = Descriptor(owning: Int32(number))
        var contents: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        // Files of /proc come in pieces.
        while contents.count < 1_048_576 {
            let count = shim_read(file.number, &buffer, buffer.count)
            if count < 0 { return nil }
            if count == 0 { break }
            contents += buffer.prefix(count)
        }
        return contents
    }
}

/// Which file a path names, a symlink not followed: another one may take its name.
package struct FileIdentity: Equatable, Sendable {
    private let device, inode: UInt64
    package let isSocket: Bool

    /// Nil if there is none.
    package init?(_ path: String) {
        var found = shim_identity()
        guard shim_identify(path, &found) == 0 else { return nil }
        device = found.device
        inode = found.inode
        isSocket = found.is_socket != 0
    }
}
