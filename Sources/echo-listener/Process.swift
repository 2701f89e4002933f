import Glibc
import Synchronization

/// The process around the service: signals and limits.
enum Process {
    private static let service = Mutex<EchoService?>(nil)

    /// Before any thread is made: SIGINT and SIGTERM wait for `waitForSignals`, SIGPIPE for nobody, and
    /// as many descriptors as the host allows may be opened.
    static func prepare() {
        var signals = watchedSignals
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            limit.rlim_cur = limit.rlim_max
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
    }

    static func hand(over new: EchoService) {
        service.withLock { $0 = new }
    }

    /// The first signal drains, the second ends the process at once.
    static func waitForSignals(statisticsEvery interval: Int?) -> Never {
        var signals = watchedSignals
        var isDraining = false
        var last = Statistics().snapshot
        while true {
            guard let signal = wait(&signals, seconds: interval) else {
                if let interval, let now = service.withLock({ $0?.statistics.snapshot }) {
                    Console.say(now.line(since: last, seconds: interval))
                    last = now
                }
                continue
            }
            // 128 + the signal's number, as a shell reports it.
            if isDraining { exit(128 + signal) }
            isDraining = true
            guard let service = service.withLock({ $0 }) else { exit(0) }
            service.drain()
        }
    }

    /// Nil after the time without a signal.
    private static func wait(_ signals: inout sigset_t, seconds: Int?) -> Int32? {
        guard let seconds else {
            var signal: Int32 = 0
            return sigwait(&signals, &signal) == 0 ? signal : nil
        }
        var time = timespec(tv_sec: seconds, tv_nsec: 0)
        let signal = sigtimedwait(&signals, nil, &time)
        return signal > 0 ? signal : nil
    }

    private static var watchedSignals: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        return signals
    }
}
