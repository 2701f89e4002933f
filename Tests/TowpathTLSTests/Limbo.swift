import Foundation
import TestSupport
import Testing
import TowpathTLS

/// The certificate path cases of C2SP/x509-limbo.
struct Limbo: Decodable {
    struct Case: Decodable, Sendable, CustomStringConvertible {
        struct Name: Decodable, Sendable {
            let kind: String
            let value: String
        }

        let id: String
        let features: [String]
        let validationKind: String
        let trustedCerts: [String]
        let untrustedIntermediates: [String]
        let peerCertificate: String
        let peerCertificateKey: String?
        let validationTime: String?
        let expectedResult: String
        let expectedPeerName: Name?
        let crls: [String]

        var description: String { id }
    }

    let testcases: [Case]

    /// Beside the checkout; nil, said aloud, where it is not.
    static func load() throws -> [Case]? {
        let file = URL(filePath: #filePath)
            .appending(path: "../../../../shared/conformance/limbo.json").standardized
        guard FileManager.default.fileExists(atPath: file.path) else {
            skip("x509-limbo: ../shared/conformance/limbo.json is not there")
            return nil
        }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(Limbo.self, from: Data(contentsOf: file)).testcases
    }
}

extension Limbo.Case {
    var isExpectedToSucceed: Bool { expectedResult == "SUCCESS" }
    var isOfServer: Bool { validationKind == "SERVER" }

    /// What the case asks for and Towpath has no setting for.
    var unsupported: String? {
        features.contains("max-chain-depth") ? "a limit of its own for the depth" : nil
    }

    var leaf: Certificate {
        get throws { try #require(Certificate.parsing(pem: Array(peerCertificate.utf8)).first) }
    }

    var intermediates: [Certificate] { get throws { try Self.parse(untrustedIntermediates) } }

    var name: TLSPeerName? {
        get throws {
            guard let expectedPeerName else { return nil }
            guard expectedPeerName.kind == "IP" else {
                return try TLSPeerName.checked(expectedPeerName.value)
            }
            return .address(try Self.address(expectedPeerName.value))
        }
    }

    /// Of the side that verifies.
    func configuration(isStrict: Bool) throws -> TLSConfiguration {
        var configuration = TLSConfiguration(isOfServer ? .client : .server)
        configuration.trust = .anchors(try Self.parse(trustedCerts))
        configuration.isStrict = isStrict
        configuration.revocationLists = try crls.map(Self.der)
        if !isOfServer { configuration.clientAuthentication = .required }
        if let validationTime {
            let date = try Date(validationTime, strategy: .iso8601)
            configuration.verificationTime = Int64(date.timeIntervalSince1970)
        }
        return configuration
    }

    func verdict(isStrict: Bool) throws -> TLSError? {
        try ChainVerifier.verify(
            leaf, intermediates: intermediates, for: name, configuration(isStrict: isStrict))
    }

    private static func parse(_ texts: [String]) throws -> [Certificate] {
        try texts.flatMap { try Certificate.parsing(pem: Array($0.utf8)) }
    }

    private static func der(ofPEM text: String) throws -> [UInt8] {
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("-----") }
        return Array(try #require(Data(base64Encoded: lines.joined())))
    }

    private static func address(_ text: String) throws -> [UInt8] {
        let family = text.contains(":") ? AF_INET6 : AF_INET
        var bytes = [UInt8](repeating: 0, count: family == AF_INET ? 4 : 16)
        try #require(inet_pton(family, text, &bytes) == 1)
        return bytes
    }
}
