import Foundation

/// The C programs in `Limits/`, compiled.
struct Limits {
    let folder: URL
    let echo: String
    let load: String
    let netlink: String
    let mallocCount: String

    private static let sources = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "Limits")

    static let defaultFolder = sources.deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: ".build/benchmarks")

    /// Compiles them, which takes about a second.
    init(building folder: URL) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        self.folder = folder
        echo = try Self.compile("echo.c", to: folder.appending(path: "echo"))
        load = try Self.compile("load.c", to: folder.appending(path: "load"))
        netlink = try Self.compile("netlink.c", to: folder.appending(path: "netlink"))
        mallocCount = try Self.compile(
            "malloccount.c", to: folder.appending(path: "malloccount.so"),
            flags: ["-shared", "-fPIC"])
    }

    private static func compile(
        _ source: String, to product: URL, flags: [String] = []
    ) throws -> String {
        let path = sources.appending(path: source).path
        _ = try ChildProcess.output(of: ["cc", "-O2"] + flags + ["-o", product.path, path])
        return product.path
    }
}
