import Glibc

/// Work on a thread of its own, because it blocks.
final class Background: Sendable {
    private let work: @Sendable () -> Void

    private init(_ work: @escaping @Sendable () -> Void) { self.work = work }

    /// On the calling thread if there can be no other.
    static func run(_ work: @escaping @Sendable () -> Void) {
        var thread = pthread_t()
        let argument = Unmanaged.passRetained(Background(work)).toOpaque()
        let result = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Background>.fromOpaque(argument).takeRetainedValue().work()
                return nil
            }, argument)
        if result == 0 {
            pthread_detach(thread)
        } else {
            Unmanaged<Background>.fromOpaque(argument).release()
            work()
        }
    }
}

/// SIGINT and SIGTERM: there may be something to say before the end.
enum Signals {
    /// Before any thread is made, which would inherit the mask.
    static func block() {
        var signals = watched
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Waits on the calling thread. Not the main thread of an asynchronous `main`: Dispatch waits there
    /// with no signal blocked.
    static func wait() -> Int32 {
        var (signals, signal) = (watched, Int32(0))
        while sigwait(&signals, &signal) != 0 {}
        return signal
    }

    private static var watched: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        return signals
    }
}
