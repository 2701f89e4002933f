import TowpathReactor

/// A locked value that closures on several threads can hold.
package final class Shared<Value: ~Copyable>: Sendable {
    private let locked: Locked<Value>

    package init(_ value: consuming sending Value) {
        locked = Locked(value)
    }

    package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        try locked.withLock(body)
    }
}

extension Shared where Value: Sendable {
    package var value: Value { locked.withLock { $0 } }
}
