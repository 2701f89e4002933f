import Towpath

/// What `--wait-for` waits for.
enum Condition: Equatable {
    case satisfied, unsatisfied, ipv4, ipv6, dns, route
    case up(String)
    case carrier(String)
    case address(String)
    case gone(String)

    init?(_ text: String) {
        let words = text.split(separator: ":", maxSplits: 1).map(String.init)
        switch (words.first, words.count > 1 ? words[1] : nil) {
        case ("satisfied", nil): self = .satisfied
        case ("unsatisfied", nil): self = .unsatisfied
        case ("ipv4", nil): self = .ipv4
        case ("ipv6", nil): self = .ipv6
        case ("dns", nil): self = .dns
        case ("route", nil): self = .route
        case ("up", let name?): self = .up(name)
        case ("carrier", let name?): self = .carrier(name)
        case ("addr", let name?): self = .address(name)
        case ("gone", let name?): self = .gone(name)
        default: return nil
        }
    }

    func isMet(by path: Path, _ interfaces: [NetworkInterface]) -> Bool {
        func interface(_ name: String) -> NetworkInterface? {
            interfaces.first { $0.name == name }
        }
        switch self {
        case .satisfied: return path.status == .satisfied
        case .unsatisfied: return path.status != .satisfied
        case .ipv4: return path.supportsIPv4
        case .ipv6: return path.supportsIPv6
        case .dns: return path.supportsDNS
        case .route: return path.supportsIPv4 || path.supportsIPv6
        case .up(let name): return interface(name)?.isUp ?? false
        case .carrier(let name): return interface(name)?.hasCarrier ?? false
        case .address(let name): return !(interface(name)?.addresses.isEmpty ?? true)
        case .gone(let name): return interface(name) == nil
        }
    }
}
