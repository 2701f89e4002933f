internal import TowpathWire

/// Which ways a connection may take, and whether it waits for one. For connections only: a listener that
/// is given any of these fails with ``NetworkError/Code/optionFailed``.
///
/// For a host that is given by name, the way to everywhere decides, since the name is looked up by it.
extension Parameters {
    /// Uses interfaces of this type only.
    public func requiredInterfaceType(_ type: InterfaceType) -> Parameters {
        withPath { $0.requiredInterfaceType = type }
    }

    /// Uses no interfaces of these types.
    public func prohibitedInterfaceTypes(_ types: Set<InterfaceType>) -> Parameters {
        withPath { $0.prohibitedInterfaceTypes = types }
    }

    /// Uses none of these interfaces, by name.
    public func prohibitedInterfaces(_ names: Set<String>) -> Parameters {
        withPath { $0.prohibitedInterfaces = names }
    }

    /// Uses no path that is expensive: a cellular interface, or one named in
    /// ``interfaceHints(expensive:constrained:)``.
    public func expensivePathsProhibited(_ prohibited: Bool) -> Parameters {
        withPath { $0.prohibitsExpensivePaths = prohibited }
    }

    /// Uses no path that is constrained, by ``interfaceHints(expensive:constrained:)``.
    public func constrainedPathsProhibited(_ prohibited: Bool) -> Parameters {
        withPath { $0.prohibitsConstrainedPaths = prohibited }
    }

    /// Which interfaces are expensive or constrained, by patterns of their names (`wwan*`): the kernel does
    /// not know.
    public func interfaceHints(
        expensive: [String] = [], constrained: [String] = []
    ) -> Parameters {
        withPath {
            $0.expensiveInterfaces = expensive
            $0.constrainedInterfaces = constrained
        }
    }

    /// Whether a connection for which there is no path waits for one
    /// (``ConnectionState/waiting(_:)``), within its connection timeout, instead of failing at once.
    /// Only a missing path is waited for: a refusal, a reset, a time-out or an unknown name fail.
    /// Default: true.
    public func waitsForConnectivity(_ waits: Bool) -> Parameters {
        withPath { $0.waitsForConnectivity = waits }
    }

    private func withPath(_ change: (inout Parameters) -> Void) -> Parameters {
        var copy = self
        change(&copy)
        return copy
    }

    /// What a path has to meet.
    var pathRequirement: PathRequirement {
        var requirement = PathRequirement()
        requirement.interface = requiredInterface
        requirement.type = requiredInterfaceType
        requirement.prohibitedTypes = prohibitedInterfaceTypes
        requirement.prohibitedInterfaces = prohibitedInterfaces
        requirement.family = ipVersion
        requirement.prohibitsExpensive = prohibitsExpensivePaths
        requirement.prohibitsConstrained = prohibitsConstrainedPaths
        requirement.expensive = expensiveInterfaces
        requirement.constrained = constrainedInterfaces
        requirement.mark = mark
        return requirement
    }

    /// Whether the interface has to be chosen before connecting.
    var choosesInterface: Bool {
        requiredInterfaceType != nil || !prohibitedInterfaceTypes.isEmpty
            || !prohibitedInterfaces.isEmpty || prohibitsExpensivePaths || prohibitsConstrainedPaths
    }
}
