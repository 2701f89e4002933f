import Foundation
import TestSupport
import Testing

/// sslyze in the folder where `Tests/check setup` puts it.
private enum Sslyze {
    private static let path = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../../.build/sslyze/bin/sslyze").standardizedFileURL.path

    static let isAvailable: Bool = {
        guard Tool.isAvailable, TLSFiles.areAvailable else { return false }
        if access(path, X_OK) == 0 { return true }
        skip("the scan of echo-listener with sslyze (run Tests/check setup)")
        return false
    }()

    struct Scan {
        /// What it prints.
        let text: String
        private let results: [String: Any]

        init(of address: String, _ files: TLSFiles) async throws {
            let end = try await files.run(
                "exec '\(path)' --json_out=scan.json --resum --certinfo_ca_file=root.pem"
                    + " --mozilla_config=intermediate \(address)")
            text = end.output
            guard end.status == 0 else {
                throw Program.Failure(description: "\(end.output)\(end.errors)")
            }
            let bytes = try Data(contentsOf: URL(filePath: "\(files.folder)/scan.json"))
            let whole = try JSONSerialization.jsonObject(with: bytes) as? [String: Any]
            let servers = try #require(whole?["server_scan_results"] as? [[String: Any]])
            results = try #require(servers.first?["scan_result"] as? [String: Any])
        }

        /// What one of its commands found.
        func result(_ command: String) throws -> [String: Any] {
            let attempt = try #require(results[command] as? [String: Any], "\(command)")
            #expect(attempt["status"] as? String == "COMPLETED", "\(command): \(attempt)")
            return try #require(attempt["result"] as? [String: Any], "\(command): \(attempt)")
        }

        /// The names of the suites of a version that it got through with.
        func suites(_ version: String) throws -> [String] {
            let accepted = try result("\(version)_cipher_suites")["accepted_cipher_suites"]
            return try #require(accepted as? [[String: Any]]).compactMap {
                ($0["cipher_suite"] as? [String: Any])?["name"] as? String
            }
        }
    }
}

@Suite(
    "echo-listener --tls, as sslyze sees it", .enabled(if: Sslyze.isAvailable),
    .timeLimit(.minutes(5)))
struct TLSSslyzeTests {
    @Test("nothing old, nothing vulnerable, and what Mozilla's intermediate configuration asks for")
    func scan() async throws {
        let files = try await TLSFiles.get()
        let server = try Tool.start(
            "exec $ECHO --tls 127.0.0.1:0 --cert \(files.folder)/server.pem"
                + " --key \(files.folder)/server.key")
        let line = try await server.line()
        let address = line.replacing("listening on tls ", with: "")
        let scan = try await Sslyze.Scan(of: address, files)

        for version in ["ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1"] {
            let result = try scan.result("\(version)_cipher_suites")
            #expect(result["is_tls_version_supported"] as? Bool == false, "\(version)")
            #expect(try scan.suites(version).isEmpty)
        }
        let older = try scan.suites("tls_1_2")
        #expect(!older.isEmpty)
        for suite in older {
            #expect(suite.hasPrefix("TLS_ECDHE_"), "\(suite)")
            #expect(suite.contains("_GCM_") || suite.contains("_CHACHA20_POLY1305_"), "\(suite)")
        }
        #expect(try scan.suites("tls_1_3").count == 3)

        for (command, key, expected) in [
            ("tls_compression", "supports_compression", false),
            ("heartbleed", "is_vulnerable_to_heartbleed", false),
            ("openssl_ccs_injection", "is_vulnerable_to_ccs_injection", false),
            ("session_renegotiation", "is_vulnerable_to_client_renegotiation_dos", false),
            ("session_renegotiation", "supports_secure_renegotiation", true),
            ("tls_fallback_scsv", "supports_fallback_scsv", true),
            ("tls_extended_master_secret", "supports_ems_extension", true),
        ] {
            #expect(try scan.result(command)[key] as? Bool == expected, "\(command): \(key)")
        }
        #expect(
            try scan.result("robot")["robot_result"] as? String
                == "NOT_VULNERABLE_RSA_NOT_SUPPORTED")
        let resumption = try scan.result("session_resumption")
        #expect(resumption["tls_ticket_resumption_result"] as? String == "FULLY_SUPPORTED")
        let curves = try scan.result("elliptic_curves")["supported_curves"] as? [[String: Any]]
        #expect(
            Set(try #require(curves).compactMap { $0["name"] as? String })
                == ["X25519", "secp256r1", "secp384r1"])

        // Its exit status says the same. The certificate's lifetime and issuer are within the rules too.
        #expect(scan.text.contains("\(address): OK - Compliant"), "\(scan.text)")
        server.signal(SIGTERM)
        #expect(try await server.end().status == 0)
    }
}
