internal import CTowpathOpenSSL

/// Hashes that protocols ask for.
package enum Digest {
    /// SHA-1, which is broken as a signature; WebSocket's handshake uses it to show that the peer read the
    /// request (RFC 6455 §10.8).
    package static func sha1(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(SHA_DIGEST_LENGTH))
        EVP_Digest(bytes, bytes.count, &digest, nil, EVP_sha1(), nil)
        return digest
    }
}

/// Base64 with padding (RFC 4648 §4).
package enum Base64 {
    package static func encode(_ bytes: [UInt8]) -> String {
        var text = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        let count = EVP_EncodeBlock(&text, bytes, Int32(clamping: bytes.count))
        return String(decoding: text.prefix(Int(count)), as: UTF8.self)
    }
}
