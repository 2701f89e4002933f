import Glibc
import Towpath

/// Runs the command for paths, one at a time: while one runs, only the newest path waits.
actor Runner {
    private let command: [String]
    private let timeout: Duration
    private var waiting: [String: String]?
    private var isRunning = false
    private var sequence = 0

    init(_ command: [String], timeout: Duration) {
        self.command = command
        self.timeout = timeout
    }

    func run(for path: Path, after old: Path?) {
        sequence += 1
        waiting = Self.variables(path, old, sequence)
        guard !isRunning else { return }
        isRunning = true
        Task { await runAll() }
    }

    private func runAll() async {
        while let variables = waiting.take() { await runOne(variables) }
        isRunning = false
    }

    private func runOne(_ variables: [String: String]) async {
        guard let process = spawn(variables) else {
            return Console.note("\(command.first ?? ""): cannot be started")
        }
        let timeout = timeout
        let guardian = Task.detached {
            guard (try? await Task.sleep(for: timeout)) != nil else { return }
            Console.note("the command takes longer than \(timeout): killed")
            kill(-process, SIGKILL)
        }
        let status = await Self.end(of: process)
        guardian.cancel()
        if status != 0 { Console.note("the command ended with status \(status)") }
    }

    private static func end(of process: pid_t) async -> Int32 {
        await withCheckedContinuation { continuation in
            Background.run {
                var status: Int32 = 0
                while waitpid(process, &status, 0) < 0, errno == EINTR {}
                // As a shell tells it.
                continuation.resume(
                    returning: status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F)
            }
        }
    }

    private func spawn(_ variables: [String: String]) -> pid_t? {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // A group of its own, to be killed as a whole, and no signals blocked.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK))
        var environment: [String] = variables.map { "\($0)=\($1)" }
        var next = environ
        while let entry = next.pointee {
            environment.append(String(cString: entry))
            next += 1
        }
        var words = command.map { strdup($0) } + [nil]
        var texts = environment.map { strdup($0) } + [nil]
        defer { for text in words + texts { free(text) } }
        var process: pid_t = 0
        let result = posix_spawnp(
            &process, command.first ?? "", nil, &attributes, &words, &texts)
        return result == 0 ? process : nil
    }

    private static func variables(
        _ path: Path, _ old: Path?, _ sequence: Int
    ) -> [String: String] {
        let first = path.interfaces.first
        return [
            "PATHWATCH_STATUS": path.status.rawValue,
            "PATHWATCH_OLD_STATUS": old?.status.rawValue ?? "",
            "PATHWATCH_REASON": path.obstacle.map { "\($0)" } ?? "",
            "PATHWATCH_IF": first?.name ?? "",
            "PATHWATCH_IFINDEX": first.map { "\($0.index)" } ?? "",
            "PATHWATCH_TYPE": first?.type.rawValue ?? "",
            "PATHWATCH_GATEWAY": path.gateways.first.map { "\($0)" } ?? "",
            "PATHWATCH_IPV4": path.supportsIPv4 ? "1" : "0",
            "PATHWATCH_IPV6": path.supportsIPv6 ? "1" : "0",
            "PATHWATCH_DNS": path.supportsDNS ? "1" : "0",
            "PATHWATCH_SEQ": "\(sequence)",
        ]
    }
}
