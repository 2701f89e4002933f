import Towpath

/// Tells systemd, sd_notify(3).
actor Notifier {
    private let connection: Connection<UDP>?
    private var isReady = false

    init() {
        let name = Console.environment("NOTIFY_SOCKET") ?? ""
        switch name.first {
        case "/": connection = Connection(to: .unix(name)) { UDP() }
        case "@": connection = Connection(to: .abstract(String(name.dropFirst()))) { UDP() }
        // Not started by systemd: nobody to tell.
        default: connection = nil
        }
    }

    func tell(_ path: Path, isReady: Bool) async {
        guard let connection else { return }
        var text = "STATUS=\(path)\n"
        let isNews = isReady && !self.isReady
        if isNews { text = "READY=1\n" + text }
        do {
            try await connection.send(text.utf8, timeout: .seconds(1))
            if isNews { self.isReady = true }
        } catch {
            Console.note("NOTIFY_SOCKET: \(error)")
        }
    }
}
