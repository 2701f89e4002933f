/// A certificate, key, identity or pin that cannot be used: which one, and why.
public struct CertificateError: Error, Sendable, CustomStringConvertible {
    /// What is wrong and what to do, for a person to read; a file is named.
    public let description: String

    package init(_ description: String) { self.description = description }
}
