import Foundation
import Testing

@Suite("The rules of the house")
struct ImportTests {
    /// What each folder of Sources/ may import beside the standard library.
    static let allowedImports: [String: Set<String>] = [
        "TowpathWire": ["CTowpathZlib"],
        "TowpathReactor": ["CTowpathLinux", "Synchronization"],
        "TowpathTLS": ["CTowpathOpenSSL"],
        "Towpath": ["TowpathWire", "TowpathReactor", "TowpathTLS"],
        "Towpath/Foundation": ["FoundationEssentials"],
        "echo-listener": ["Towpath", "Glibc", "Synchronization"],
        "pathwatch": ["Glibc", "Towpath"],
    ]

    @Test("a target imports only what its room in the house may see")
    func imports() throws {
        let files = try texts(below: "Sources", endingIn: ["swift"])
        #expect(!files.isEmpty)
        for file in files {
            let folders = file.path.split(separator: "/").dropFirst().map(String.init)
            let target = folders[0]
            guard
                let allowed = Self.allowedImports[folders.prefix(2).joined(separator: "/")]
                    ?? Self.allowedImports[target]
            else {
                Issue.record("\(file.path): no imports are laid down for \(target)")
                continue
            }
            for module in file.lines.compactMap(importedModule) where !allowed.contains(module) {
                Issue.record("\(file.path) imports \(module)")
            }
        }
    }

    @Test(
        "an import is recognised in every form that it takes",
        arguments: [
            ("import Foundation", "Foundation"), ("public import A", "A"),
            ("@_exported public import TowpathWire", "TowpathWire"), ("  internal import B", "B"),
            ("@preconcurrency import struct Foundation.Data", "Foundation"),
            ("@_spi(X) package import C // why", "C"), ("#if os(Linux)", nil),
            ("// import D", nil), ("let text = \"import E\"", nil), ("func f(import g: Int)", nil),
        ])
    func importForms(line: String, module: String?) {
        #expect(importedModule(line) == module)
    }

    @Test("a C shim includes only the system's headers, or the first of the shims")
    func shims() throws {
        for file in try texts(below: "Sources", endingIn: ["h"]) {
            for line in file.lines where line.hasPrefix("#include") {
                let isAllowed = line.hasPrefix("#include <") || line == "#include \"shims.h\""
                #expect(isAllowed, "\(file.path): \(line)")
            }
        }
    }

    @Test(
        "no test reaches past access control, and none sleeps",
        arguments: ["@testable", "Task.sleep", "sleep(", ".sleep"])
    func forbiddenInTests(word: String) throws {
        for file in try texts(below: "Tests", endingIn: ["swift", "c", "h", "py"])
        where !file.path.hasSuffix("/ImportTests.swift") {
            for line in file.lines where line.contains(word) {
                Issue.record("\(file.path): \(line)")
            }
        }
    }

    @Test("CONTRIBUTING.md lists each file that has unsafe code, and no other")
    func unsafeCode() throws {
        let marks = ["@unchecked", "unsafe", "unmanaged"]
        let files = try texts(below: "Sources", endingIn: ["swift"]).filter { file in
            file.lines.contains { line in
                let code = line.firstRange(of: "//").map { line[..<$0.lowerBound] } ?? line[...]
                return marks.contains { code.lowercased().contains($0) }
            }
        }
        let unsafe = Set(files.map { String($0.path.split(separator: "/").last ?? "") })
        let listed = try listedFiles()
        for name in unsafe.subtracting(listed).sorted() {
            Issue.record("\(name) has unsafe code: CONTRIBUTING.md must say why")
        }
        for name in listed.subtracting(unsafe).sorted() {
            Issue.record("\(name) is listed in CONTRIBUTING.md, but has no unsafe code")
        }
    }

    /// The Swift files named in CONTRIBUTING.md under a heading that contains "unsafe".
    private func listedFiles() throws -> Set<String> {
        let text = try String(contentsOf: root.appending(path: "CONTRIBUTING.md"), encoding: .utf8)
        var level: Int?
        var names: Set<String> = []
        for line in text.split(separator: "\n") {
            let depth = line.prefix { $0 == "#" }.count
            if depth > 0, level.map({ depth <= $0 }) ?? true {
                level = line.lowercased().contains("unsafe") ? depth : nil
            } else if level != nil {
                let words = line.split { !($0.isLetter || $0.isNumber || "+-_.".contains($0)) }
                names.formUnion(words.filter { $0.hasSuffix(".swift") }.map(String.init))
            }
        }
        return names
    }
}

/// The module that a line imports: attributes, an access level, `import`, a kind of declaration.
private func importedModule(_ line: String) -> String? {
    var words = line.split(separator: " ")[...]
    let levels = ["public", "package", "internal", "fileprivate", "private"]
    while let word = words.first, word.hasPrefix("@") || levels.contains(String(word)) {
        words.removeFirst()
    }
    guard words.popFirst() == "import", let first = words.popFirst() else { return nil }
    let kinds = ["typealias", "struct", "class", "enum", "protocol", "let", "var", "func"]
    let path = kinds.contains(String(first)) ? words.first : first
    return path?.split(separator: ".").first.map(String.init)
}

/// A text file of the repository.
private struct TextFile {
    let path: String
    let lines: [String]
}

private let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

/// The files below a folder of the repository with one of these endings.
private func texts(below folder: String, endingIn endings: Set<String>) throws -> [TextFile] {
    let paths = try FileManager.default.subpathsOfDirectory(
        atPath: root.appending(path: folder).path)
    return try paths.sorted().map { "\(folder)/\($0)" }
        .filter { endings.contains(URL(filePath: $0).pathExtension) }
        .map { path in
            let text = try String(contentsOf: root.appending(path: path), encoding: .utf8)
            return TextFile(path: path, lines: text.components(separatedBy: "\n"))
        }
}
