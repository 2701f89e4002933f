internal import TowpathReactor

/// The process's event loops: as many as it may use processors, shared by all connections and
/// listeners, and alive as long as the process.
public enum EventLoops {
    /// How many there are.
    public static var count: Int { EventLoopGroup.shared.count }

    /// The executor of one loop, each in turn.
    ///
    /// A task that prefers it runs beside the connections of that loop and wakes no other thread:
    /// `Task(executorPreference: try EventLoops.executor()) { … }`. What blocks there stalls them.
    /// Throws ``NetworkError/Code/resourcesExhausted`` if the loops cannot be made.
    public static func executor() throws(NetworkError) -> any TaskExecutor {
        do throws(SystemError) { return try EventLoopGroup.shared.next() } catch {
            throw NetworkError(error, .setup, "no event loop")
        }
    }
}
