public import CTowpathLinux

/// A value behind a pthread mutex.
///
/// Not `Synchronization.Mutex`: ThreadSanitizer in Swift 6.3.1 does not see its futex and reports
/// false races, and an uncontended lock and unlock costs three times as much.
///
/// Nothing that enters the Swift runtime (resuming a continuation, yielding to a stream, making a
/// task) may run in `withLock`: the runtime calls cancellation handlers while it holds the task's
/// own lock, and those take this one.
///
/// Public, though no product exports this module: `@inlinable` has no effect on `package`
/// declarations, and the unspecialized copy costs 1,600 instructions a round trip.
public struct Locked<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    /// The mutex stands in front, so that one allocation holds both and neither moves.
    @usableFromInline struct Storage: ~Copyable {
        @usableFromInline var mutex = pthread_mutex_t()
        @usableFromInline var value: Value

        @usableFromInline init(_ value: consuming Value) { self.value = value }
    }

    @usableFromInline let storage: UnsafeMutablePointer<Storage>

    /// Puts the value behind a lock.
    public init(_ value: consuming sending Value) {
        storage = .allocate(capacity: 1)
        storage.initialize(to: Storage(value))
        pthread_mutex_init(&storage.pointee.mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(&storage.pointee.mutex)
        storage.deinitialize(count: 1)
        storage.deallocate()
    }

    /// Runs `body` with the lock held.
    @inlinable public borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(&storage.pointee.mutex)
        defer { pthread_mutex_unlock(&storage.pointee.mutex) }
        return try body(&storage.pointee.value)
    }
}
