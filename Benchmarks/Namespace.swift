import Foundation

/// A network namespace of its own, with a default route of each family.
///
/// It has no name: it is that of a process which sleeps, and goes with it, on whatever way that or the
/// driver ends.
final class Namespace {
    private let holder: ChildProcess

    /// Why there can be none; nil if there can.
    static var obstacle: String? { geteuid() == 0 ? nil : "a network namespace needs root" }

    /// Duplicate address detection is off: addresses would come one or two seconds late.
    private static let script = """
        set -e
        echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad
        ip -batch - <<END
        link set lo up
        link add w0 type veth peer name w1
        link set w0 up
        link set w1 up
        address add 10.99.0.1/16 dev w0
        address add fd99::1/64 dev w0
        route add default via 10.99.1.0
        route add default via fd99::2
        END
        echo ready
        exec sleep infinity
        """

    init() throws {
        holder = try ChildProcess(["unshare", "--net", "sh", "-c", Self.script])
        do { _ = try holder.line(within: .seconds(10)) } catch {
            holder.terminate()
            throw error
        }
    }

    deinit { holder.terminate() }

    var path: String { "/proc/\(holder.identifier)/ns/net" }

    /// The command, run inside.
    func inside(_ command: [String]) -> [String] { ["nsenter", "--net=\(path)"] + command }

    /// As it was before `netlink change`.
    func resetGateway() throws {
        let replace = ["ip", "route", "replace", "default", "via", "10.99.1.0"]
        _ = try ChildProcess.output(of: inside(replace))
    }

    /// `ip` with what makes pairs of interfaces and sets them up.
    static func pairs(_ count: Int, in folder: URL) throws -> [String] {
        let numbers = 0..<count
        let lines =
            numbers.map { number in
                "link add v\(number) group \(crowd) type veth peer name p\(number) group \(crowd)"
            } + numbers.flatMap { ["link set v\($0) up", "link set p\($0) up"] }
        let file = folder.appending(path: "pairs.\(count)")
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: file)
        return ["ip", "-batch", file.path]
    }

    /// Deletes them, all at once: one by one takes 20 ms each, and so does what a namespace leaves.
    static let deletePairs = ["ip", "link", "delete", "group", crowd]

    private static let crowd = "7"
}
