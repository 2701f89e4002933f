import Foundation

/// The C programs in `Limits/`, compiled.
struct Limits {
    let folder: URL
    let echo: String
    let load: String
    let netlink: String
    let bytes: String
    let mallocCount: String
    /// PEM files of the certificate and its key, for both servers.
    let identity: [String]

    static let sources = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "Limits")

    static let defaultFolder = sources.deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: ".build/benchmarks")

    /// Compiles them, which takes about a second.
    init(building folder: URL) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        self.folder = folder
        let tls = ["-lssl", "-lcrypto"]
        echo = try Self.compile("echo.c", to: folder.appending(path: "echo"), libraries: tls)
        load = try Self.compile(
            "load.c", to: folder.appending(path: "load"), libraries: tls + ["-lz"])
        netlink = try Self.compile("netlink.c", to: folder.appending(path: "netlink"))
        bytes = try Self.compile("bytes.c", to: folder.appending(path: "bytes"))
        mallocCount = try Self.compile(
            "malloccount.c", to: folder.appending(path: "malloccount.so"),
            flags: ["-shared", "-fPIC"])
        identity = try Self.makeIdentity(in: folder)
    }

    /// A new key each time; P-256 as most servers have it.
    private static func makeIdentity(in folder: URL) throws -> [String] {
        let files = ["certificate.pem", "key.pem"].map { folder.appending(path: $0).path }
        _ = try ChildProcess.output(
            of: [
                "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                "-out", files[0], "-keyout", files[1],
            ], silent: true)
        return files
    }

    static func compile(
        _ source: String, to product: URL, flags: [String] = [], libraries: [String] = []
    ) throws -> String {
        let path = sources.appending(path: source).path
        _ = try ChildProcess.output(
            of: ["cc", "-O2"] + flags + ["-o", product.path, path] + libraries)
        return product.path
    }
}
