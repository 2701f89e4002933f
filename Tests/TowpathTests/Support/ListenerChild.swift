import Glibc
import Testing
import Towpath
import TowpathReactor

/// What the tests that need a process of their own look at.
enum OwnProcess {
    /// The numbers of the descriptors that are open.
    static var descriptors: Set<Int32> {
        // The directory's own is closed by now.
        Set(
            entries(of: "/proc/self/fd").compactMap { Int32($0) }.filter { fcntl($0, F_GETFD) >= 0 }
        )
    }

    /// How many more descriptors may be opened from now on.
    static func allowDescriptors(_ count: Int) {
        // The limit is one above the highest number: those that are free below it count as well.
        let open = descriptors
        var highest: Int32 = 0
        var free = 0
        while free < count {
            if !open.contains(highest) { free += 1 }
            highest += 1
        }
        limitDescriptors { _ in rlim_t(highest) }
    }

    static func allowAllDescriptors() { limitDescriptors(\.rlim_max) }

    private static func limitDescriptors(_ choose: (rlimit) -> rlim_t) {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        getrlimit(resource, &limit)
        limit.rlim_cur = choose(limit)
        setrlimit(resource, &limit)
    }

    /// Ends the process if it hangs: nobody else would.
    static func guardAgainstHanging() { alarm(100) }

    static var loops: [EventLoop] { (try? EventLoopGroup.shared.all()) ?? [] }
}

/// Counts how often the threads of the event loops are scheduled.
final class LoopWakeUps {
    /// Kept open, to be read where no descriptor is left.
    private let files: [Int32]

    init() async {
        // Its thread has its name once a loop runs tasks.
        for loop in OwnProcess.loops { await Task(executorPreference: loop) {}.value }
        var files: [Int32] = []
        for name in entries(of: "/proc/self/task") {
            let path = "/proc/self/task/\(name)/status"
            guard contents(of: path).hasPrefix("Name:\ttowpath-loop") else { continue }
            files.append(open(path, O_RDONLY | O_CLOEXEC))
        }
        #expect(files.count == EventLoops.count)
        self.files = files
    }

    deinit { for file in files { close(file) } }

    private var total: Int {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        return files.reduce(0) { sum, file in
            let length = pread(file, &buffer, buffer.count, 0)
            let text = String(decoding: buffer.prefix(max(0, length)), as: UTF8.self)
            let counts = text.split(separator: "\n").filter { $0.contains("ctxt_switches") }
            return counts.reduce(sum) { $0 + (Int($1.split(separator: "\t").last ?? "") ?? 0) }
        }
    }

    /// While nothing else happens.
    func count(inMilliseconds time: Int32) -> Int {
        let before = total
        poll(nil, 0, time)
        return total - before
    }
}
