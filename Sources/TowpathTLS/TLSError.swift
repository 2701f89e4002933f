internal import CTowpathOpenSSL

/// Why TLS failed.
package struct TLSError: Error, Sendable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        /// An option cannot have its effect.
        case configuration
        /// The peer's certificate does not prove who it is: the code is an X509_V_ERR_ of X509_verify_cert(3).
        case certificate(code: Int32)
        /// No certificate of the peer's chain has a key that is pinned.
        case pinMismatch
        /// The user's own verification said no.
        case rejected
        /// The peer sent this alert (RFC 8446 §6).
        case alert(UInt8)
        /// The stream ended without a close_notify.
        case truncated
        /// The peer does not speak TLS.
        case notTLS
        /// The two have no version, cipher suite, group or protocol in common, or one breaks the rules.
        case handshake
    }

    package let kind: Kind
    /// What happened and what to do, for a person to read.
    package let description: String
    /// What OpenSSL says; empty where it has no part in it.
    package let reasons: String

    package init(_ kind: Kind, _ description: String, reasons: String = "") {
        self.kind = kind
        self.description = description
        self.reasons = reasons
    }

    /// From the thread's error queue, right after the call that failed.
    static func taking(during what: String) -> TLSError {
        let (code, reasons) = takeErrors()
        guard code != 0 else { return TLSError(.truncated, Self.truncation) }
        let reason = ossl_reason(code)
        guard ossl_library(code) == Int32(ERR_LIB_SSL) else {
            return TLSError(.handshake, "\(what): \(reasons)", reasons: reasons)
        }
        // SSL_AD_REASON_OFFSET: what the peer sent.
        if reason > 1_000, reason < 1_256 {
            let alert = UInt8(truncatingIfNeeded: reason - 1_000)
            return TLSError(
                .alert(alert), "the peer refused: \(Self.name(ofAlert: alert))", reasons: reasons)
        }
        switch reason {
        case SSL_R_UNEXPECTED_EOF_WHILE_READING:
            return TLSError(.truncated, Self.truncation, reasons: reasons)
        case SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST, SSL_R_WRONG_VERSION_NUMBER:
            return TLSError(
                .notTLS, "the peer does not speak TLS; is the port for plain connections?",
                reasons: reasons)
        default:
            return TLSError(.handshake, "\(what): \(reasons)", reasons: reasons)
        }
    }

    static let leftDuringHandshake = TLSError(.truncated, "the peer left during the handshake")

    static let truncation =
        "the stream ended without a closing alert: something may be missing"

    /// Empties the thread's queue.
    static func takeErrors() -> (code: UInt, reasons: String) {
        var text = [CChar](repeating: 0, count: 512)
        let code = ossl_take_errors(&text, text.count)
        let bytes = text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:))
        return (code, String(decoding: bytes, as: UTF8.self))
    }

    static func configuration(_ what: String) -> TLSError {
        let reasons = takeErrors().reasons
        return TLSError(
            .configuration, reasons.isEmpty ? what : "\(what): \(reasons)", reasons: reasons)
    }

    /// The names of RFC 8446 §6.
    package static func name(ofAlert alert: UInt8) -> String {
        let names: [UInt8: String] = [
            0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac",
            22: "record_overflow", 40: "handshake_failure", 42: "bad_certificate",
            43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired",
            46: "certificate_unknown", 47: "illegal_parameter", 48: "unknown_ca",
            49: "access_denied", 50: "decode_error", 51: "decrypt_error", 70: "protocol_version",
            71: "insufficient_security", 80: "internal_error", 86: "inappropriate_fallback",
            90: "user_canceled", 100: "no_renegotiation", 109: "missing_extension",
            110: "unsupported_extension", 112: "unrecognized_name",
            113: "bad_certificate_status_response", 115: "unknown_psk_identity",
            116: "certificate_required", 120: "no_application_protocol",
        ]
        return names[alert] ?? "alert \(alert)"
    }
}
