internal import CTowpathOpenSSL

/// A host, or which hosts are meant: a name or address, `*.` and a name for one label more, or `**.` and
/// a name for that name and everything below it.
struct HostPattern: Hashable, Sendable {
    enum Wildcard: Hashable, Sendable { case none, oneLabel, anyDepth }

    let wildcard: Wildcard
    /// In lower case and without a dot at its end; an address in its canonical bytes.
    private let labels: [[UInt8]]
    private let address: [UInt8]?

    /// Without a wildcard, this is the normalised host.
    init(parsing text: String) throws(CertificateError) {
        var rest = Substring(text)
        if rest.hasPrefix("**.") {
            wildcard = .anyDepth
            rest = rest.dropFirst(3)
        } else if rest.hasPrefix("*.") {
            wildcard = .oneLabel
            rest = rest.dropFirst(2)
        } else {
            wildcard = .none
        }
        address = Self.addressBytes(String(rest))
        guard address == nil else {
            labels = []
            guard wildcard == .none else {
                throw CertificateError("the host \(quoted(text)): an address has no labels")
            }
            return
        }
        let result = Self.labels(of: rest)
        guard case .success(let labels) = result else {
            if case .failure(let error) = result {
                throw CertificateError("the host \(quoted(text)): \(error.description)")
            }
            throw CertificateError("the host \(quoted(text)) is malformed")
        }
        self.labels = labels
    }

    /// Whether a host, which has no wildcard, is one of those meant.
    func matches(_ host: HostPattern) -> Bool {
        guard address == nil, host.address == nil else { return address == host.address }
        switch wildcard {
        case .none: return labels == host.labels
        case .oneLabel: return labels.elementsEqual(host.labels.dropFirst())
        case .anyDepth: return labels.elementsEqual(host.labels.suffix(labels.count))
        }
    }

    /// The bytes of an address, which may have brackets or a zone; nil for a name.
    ///
    /// OpenSSL would read `01.2.3.4`, which means something else to others, and a sign or a space.
    static func addressBytes(_ text: String) -> [UInt8]? {
        let hasBrackets = text.hasPrefix("[") && text.hasSuffix("]")
        var bare = (hasBrackets ? text.dropFirst().dropLast() : text[...]).utf8[...]
        if bare.contains(UInt8(ascii: ":")) {
            bare = bare.prefix { $0 != UInt8(ascii: "%") }
        } else {
            guard !hasBrackets, bare.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2E }),
                bare.split(separator: 0x2E).allSatisfy({ $0.count == 1 || $0.first != 0x30 })
            else { return nil }
        }
        guard !bare.contains(where: { $0 <= 0x20 }) else { return nil }
        defer { ERR_clear_error() }
        guard let octets = a2i_IPADDRESS(String(Substring(bare))) else { return nil }
        defer { ASN1_OCTET_STRING_free(octets) }
        return OpenSSLMemory.bytes { ossl_write_octets($0, octets) }
    }

    private static func labels(of name: Substring) -> Result<[[UInt8]], CertificateError> {
        let bytes = Array(name.utf8)
        func failure(_ reason: String) -> Result<[[UInt8]], CertificateError> {
            .failure(CertificateError(reason))
        }
        guard bytes.allSatisfy({ $0 < 0x80 }) else {
            return failure("a host name is ASCII; give the name with its A-labels (xn--…)")
        }
        guard !bytes.contains(UInt8(ascii: "*")) else {
            return failure("a wildcard is all of the first label, *. or **.")
        }
        let lowercased = bytes.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
        guard
            lowercased.allSatisfy({
                (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || "-_.".utf8.contains($0)
            })
        else { return failure("a host name has only letters, digits, '-', '_' and '.'") }
        var labels = lowercased.split(
            separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        if labels.count > 1, labels.last?.isEmpty ?? false { labels.removeLast() }
        guard labels.allSatisfy({ (1...63).contains($0.count) }) else {
            return failure("each label of a host name has 1 to 63 bytes")
        }
        guard labels.reduce(labels.count - 1, { $0 + $1.count }) <= 253 else {
            return failure("a host name has at most 253 bytes")
        }
        guard !(labels.last?.allSatisfy { (0x30...0x39).contains($0) } ?? false) else {
            return failure("the last label of a host name is no number")
        }
        return .success(labels.map(Array.init))
    }

    var isAddress: Bool { address != nil }

    /// The host, normalised; IPv4 in dotted decimal, IPv6 as eight groups.
    var text: String {
        guard let address else {
            let name = labels.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ".")
            return switch wildcard {
            case .none: name
            case .oneLabel: "*.\(name)"
            case .anyDepth: "**.\(name)"
            }
        }
        return Self.text(ofAddress: address)
    }

    /// IPv4 in dotted decimal, others in groups of two bytes.
    static func text(ofAddress bytes: [UInt8]) -> String {
        guard bytes.count > 4 else { return bytes.map(String.init).joined(separator: ".") }
        return stride(from: 0, to: bytes.count - 1, by: 2).map { index in
            String(Int(bytes[index]) << 8 | Int(bytes[index + 1]), radix: 16)
        }.joined(separator: ":")
    }
}
