import Foundation
import TestSupport
import Towpath

/// Certificates and keys that the `openssl` command made for this process: NAME.pem, the certificate with
/// the chain behind it, and NAME.key. Gone with the process.
struct TLSFiles: Sendable {
    let folder: String

    private static let shared = Task { try await make() }
    private static let made = Shared<String?>(nil)

    /// Interop is skipped under the sanitizers, which would only watch the test's own side.
    static let areAvailable = !isSanitized && Program.has("openssl")

    /// Made with the first call.
    static func get() async throws -> TLSFiles { try await shared.value }

    private static func make() async throws -> TLSFiles {
        var template = Array("/tmp/towpath-tls-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw Program.Failure(description: "mkdtemp: errno \(errno)")
        }
        let bytes = template.dropLast().map { UInt8(bitPattern: $0) }
        let files = TLSFiles(folder: String(decoding: bytes, as: UTF8.self))
        made.withLock { $0 = files.folder }
        atexit {
            if let folder = TLSFiles.made.value {
                try? FileManager.default.removeItem(atPath: folder)
            }
        }
        let end = try await files.run(script)
        guard end.status == 0 else { throw Program.Failure(description: end.errors) }
        return files
    }

    /// Starts a shell's command line among the files.
    func start(_ line: String) throws -> Program {
        try Program(shell: "cd '\(folder)' && \(line)")
    }

    /// Runs a command line among the files, to its end.
    func run(_ line: String) async throws -> Program.End { try await start(line).end() }

    func identity(_ name: String) throws -> Identity {
        try Identity(certificateFile: "\(folder)/\(name).pem", keyFile: "\(folder)/\(name).key")
    }

    func path(_ name: String) -> String { "\(folder)/\(name)" }

    func certificates(_ name: String) throws -> [Certificate] {
        try Certificate.reading(file: path("\(name).pem"))
    }

    /// The pin of a certificate's key, as the command line computes it.
    func pin(_ name: String) async throws -> String {
        let end = try await run(
            "openssl x509 -in \(name).pem -noout -pubkey | openssl pkey -pubin -outform der"
                + " | openssl dgst -sha256 -binary | base64")
        return end.output.trimmingCharacters(in: .newlines)
    }

    /// Servers below `intermediate` below `root`, a client below `client-root`, and one that nobody signed.
    private static let script = #"""
        set -e
        key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
        root() {
            key "$1"
            openssl req -x509 -new -key "$1.key" -days 2 -subj "/CN=$1" -out "$1.pem" \
                -addext keyUsage=critical,keyCertSign,cRLSign
        }
        # signed NAME AUTHORITY EXTENSIONS [OPTIONS]
        signed() {
            local name=$1 authority=$2 extensions=$3
            shift 3
            key "$name"
            openssl req -new -key "$name.key" -subj "/CN=$name" | openssl x509 -req -days 2 \
                -CA "$authority.pem" -CAkey "$authority.key" -CAcreateserial -out "$name.pem" \
                -extfile <(echo "subjectKeyIdentifier=hash"; echo "authorityKeyIdentifier=keyid"
                    printf '%s\n' $extensions) "$@"
        }
        signing="basicConstraints=critical,CA:TRUE keyUsage=critical,keyCertSign"
        leaf="basicConstraints=CA:FALSE keyUsage=critical,digitalSignature"
        names="subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"
        root root
        root client-root
        signed intermediate root "$signing"
        signed server intermediate "$leaf extendedKeyUsage=serverAuth $names"
        signed expired intermediate "$leaf extendedKeyUsage=serverAuth $names" -days -1
        signed other intermediate "$leaf extendedKeyUsage=serverAuth subjectAltName=DNS:other.test"
        signed client client-root "$leaf extendedKeyUsage=clientAuth"
        for name in server expired other; do cat intermediate.pem >>"$name.pem"; done
        key self-signed
        openssl req -x509 -new -key self-signed.key -days 2 -subj /CN=self-signed \
            -out self-signed.pem -addext "$names" -addext basicConstraints=critical,CA:FALSE
        """#
}
