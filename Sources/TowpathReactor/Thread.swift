internal import CTowpathLinux

/// Threads of Towpath's own. They block every signal: those are for the embedding process.
enum Thread {
    private final class Body {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    static func start(
        name: String, _ run: @escaping @Sendable () -> Void
    ) throws(SystemError) -> pthread_t {
        let body = Unmanaged.passRetained(Body(name: name, run: run))
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                shim_block_all_signals()
                let body = Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                shim_name_thread(body.name)
                body.run()
                return nil
            }, body.toOpaque())
        guard result == 0 else {
            body.release()
            throw SystemError(result, "pthread_create")
        }
        return thread
    }
}
