import TowpathReactor

/// A locked value that closures on several threads can hold.
final class Shared<Value: ~Copyable>: Sendable {
    private let locked: Locked<Value>

    init(_ value: consuming sending Value) {
        locked = Locked(value)
    }

    func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        try locked.withLock(body)
    }
}
