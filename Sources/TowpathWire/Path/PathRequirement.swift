/// Which ways count, and what the user knows of interfaces that the kernel does not.
package struct PathRequirement: Hashable, Sendable {
    /// Only this interface, by name.
    package var interface: String?
    /// Only interfaces of this type.
    package var type: InterfaceType?
    package var prohibitedTypes: Set<InterfaceType> = []
    package var prohibitedInterfaces: Set<String> = []
    package var family: AddressFamily?
    package var prohibitsExpensive = false
    package var prohibitsConstrained = false
    /// Patterns of names, with `*` and `?`.
    package var expensive: [String] = []
    package var constrained: [String] = []
    package var ultraConstrained: [String] = []
    /// Selectors of the questions to the kernel.
    package var source: IPAddress?
    package var mark: UInt32?
    package var user: UInt32?

    package init() {}

    /// Whether it leaves some interfaces out, so that each has to be asked for by itself.
    var selectsInterfaces: Bool {
        interface != nil || type != nil || !prohibitedTypes.isEmpty || !prohibitedInterfaces.isEmpty
            || prohibitsExpensive || prohibitsConstrained
    }

    func allows(_ name: String, _ type: InterfaceType) -> Bool {
        (interface ?? name) == name && (self.type ?? type) == type
            && !prohibitedTypes.contains(type) && !prohibitedInterfaces.contains(name)
            && !(prohibitsExpensive && isExpensive(name, type))
            && !(prohibitsConstrained && isConstrained(name))
    }

    func isExpensive(_ name: String, _ type: InterfaceType) -> Bool {
        type == .cellular || expensive.contains { Self.matches(name, $0) }
    }

    func isConstrained(_ name: String) -> Bool {
        (constrained + ultraConstrained).contains { Self.matches(name, $0) }
    }

    func isUltraConstrained(_ name: String) -> Bool {
        ultraConstrained.contains { Self.matches(name, $0) }
    }

    /// Patterns of glob(7) without brackets.
    package static func matches(_ name: String, _ pattern: String) -> Bool {
        let (name, pattern) = (Array(name.utf8), Array(pattern.utf8))
        var (at, place) = (0, 0)
        // Where the last star stood, and how much of the name it took.
        var star: (pattern: Int, name: Int)?
        while at < name.count {
            if place < pattern.count, pattern[place] == UInt8(ascii: "*") {
                star = (place, at)
                place += 1
            } else if place < pattern.count,
                pattern[place] == name[at] || pattern[place] == UInt8(ascii: "?")
            {
                (at, place) = (at + 1, place + 1)
            } else if let last = star {
                star = (last.pattern, last.name + 1)
                (at, place) = (last.name + 1, last.pattern + 1)
            } else {
                return false
            }
        }
        return pattern[place...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
