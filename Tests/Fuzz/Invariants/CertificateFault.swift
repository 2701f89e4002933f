internal import TowpathTLS

/// What is wrong with how the bytes are read as a certificate, an identity and pins; nil if nothing is.
///
/// Every reader takes any bytes without trapping. A certificate that was read says everything about itself,
/// and its DER is read as an equal one; what is refused has a reason.
package func certificateFault(in bytes: [UInt8]) -> String? {
    certificateFault(der: bytes) ?? certificateFault(pem: bytes) ?? identityFault(bytes)
        ?? pinFault(String(decoding: bytes, as: UTF8.self))
}

private func certificateFault(der bytes: [UInt8]) -> String? {
    do {
        let certificate = try Certificate(der: bytes)
        return fault(of: certificate)
    } catch {
        return error.description.isEmpty ? "DER is refused without a reason" : nil
    }
}

private func certificateFault(pem bytes: [UInt8]) -> String? {
    do {
        let certificates = try Certificate.parsing(pem: bytes)
        if certificates.isEmpty { return "no certificate, and no error" }
        return certificates.lazy.compactMap { fault(of: $0) }.first
    } catch {
        return error.description.isEmpty ? "PEM is refused without a reason" : nil
    }
}

private func fault(of certificate: Certificate) -> String? {
    let description = certificate.description
    let names = certificate.dnsNames + certificate.emailAddresses + certificate.uris
    let texts = [certificate.subject, certificate.issuer, certificate.serialNumber] + names
    guard (texts + [description]).allSatisfy({ $0.utf8.allSatisfy { (0x20...0x7E).contains($0) } })
    else { return "\(description): not safe to print" }
    guard certificate.ipAddresses.allSatisfy({ $0.count == 4 || $0.count == 16 }) else {
        return "\(description): an address of another length"
    }
    _ = (certificate.notBefore, certificate.notAfter, certificate.isAuthority)
    _ = (certificate.isSelfSigned, certificate.pin)
    guard let again = try? Certificate(der: certificate.der), again == certificate,
        again.hashValue == certificate.hashValue
    else { return "\(description): its DER is another certificate" }
    let roundTrip = try? Certificate.parsing(pem: certificate.pem)
    return roundTrip == [certificate] ? nil : "\(description): its PEM is another certificate"
}

/// Without a password: what is encrypted says itself how many rounds it takes, up to hours. For the same
/// reason PKCS #12 is not here.
private func identityFault(_ bytes: [UInt8]) -> String? {
    do { _ = try Identity(pem: bytes) } catch {
        if error.description.isEmpty { return "PEM is no identity, without a reason" }
    }
    return nil
}

private func pinFault(_ text: String) -> String? {
    if let pin = try? Pin(parsing: text) {
        guard (try? Pin(parsing: pin.description)) == pin else { return "\(pin): not read again" }
    }
    if let pins = try? Pin.parsing(list: text), pins.isEmpty { return "a list without a pin" }
    return nil
}
