/// The version of the Internet Protocol that an address belongs to.
public enum AddressFamily: Hashable, Sendable {
    /// Addresses of 32 bits, found by A records.
    case ipv4
    /// Addresses of 128 bits, found by AAAA records.
    case ipv6
}
