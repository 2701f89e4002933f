internal import CTowpathLinux

/// How many processors the process may use: its affinity mask, bounded by the CPU quota of its
/// control groups, rounded up.
package enum ProcessorCount {
    package static var usable: Int {
        let affinity = Int(shim_affinity_count())
        let membership = read("/proc/self/cgroup") ?? ""
        let quotas = paths(membership: membership).compactMap { path in
            read("/sys/fs/cgroup\(path)/cpu.max").flatMap(quota(cpuMax:))
        }
        guard let quota = quotas.min() else { return affinity }
        return min(affinity, max(1, Int(quota.rounded(.up))))
    }

    /// The group of cgroups(7) version 2 and all above it: each may have a quota.
    package static func paths(membership: String) -> [String] {
        guard let line = membership.split(separator: "\n").first(where: { $0.hasPrefix("0::/") })
        else { return [] }
        var path = line.dropFirst(3)
        var paths: [String] = []
        while path.count > 1 {
            paths.append(String(path))
            path = path.prefix(upTo: path.lastIndex(of: "/") ?? path.startIndex)
        }
        // The root has a quota where it is that of a container's namespace.
        return paths + [""]
    }

    /// `cpu.max` holds "max PERIOD" or "QUOTA PERIOD", in microseconds.
    package static func quota(cpuMax text: String) -> Double? {
        let fields = text.split(whereSeparator: \.isWhitespace).map { Double($0) }
        guard fields.count == 2, let quota = fields[0], let period = fields[1], period > 0 else {
            return nil
        }
        return quota / period
    }

    private static func read(_ path: String) -> String? {
        let number = shim_open_read(path)
        guard number >= 0 else { return nil }
        let file = Descriptor(owning: Int32(number))
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = shim_read(file.number, &buffer, buffer.count)
        return count < 0 ? nil : String(decoding: buffer.prefix(count), as: UTF8.self)
    }
}
