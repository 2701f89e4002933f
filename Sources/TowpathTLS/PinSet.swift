/// Which public keys may prove to be which hosts.
///
/// Pins come in addition to trust and to the check of the host name. One pin that matches any
/// certificate of the chain that was verified is enough; none means that the handshake fails. An empty
/// set is refused: it never means that nothing is checked.
public struct PinSet: Hashable, Sendable {
    /// Pins for some hosts, or for all.
    public struct Entry: Hashable, Sendable {
        /// The hosts: a name or address, `*.name` for one label more, or `**.name` for the name itself
        /// and all below it. With none, every host is meant.
        public var hosts: [String]
        /// The pins of keys in use.
        public var pins: [Pin]
        /// The pins of keys kept elsewhere, for the day when those in use are lost. They match like the
        /// others.
        public var backups: [Pin]

        /// Pins for these hosts; for every host if there are none.
        public init(hosts: [String] = [], pins: [Pin], backups: [Pin] = []) {
            self.hosts = hosts
            self.pins = pins
            self.backups = backups
        }
    }

    /// A host that several entries mean has the pins of all of them.
    public var entries: [Entry]

    /// Whether only the first certificate, the host's own, may match; as curl does it.
    public var leafOnly = false

    /// Whether a mismatch is only reported, and the connection goes on.
    public var reportOnly = false

    /// The last second, counted from 1970, in which the pins are checked: then they are ignored, so that
    /// a program that nobody updates does not lock itself out.
    public var expires: Int64?

    /// Whether an entry may have a single pin, or no backup: whoever loses that key locks out every
    /// program that pins it.
    public var allowsNoBackup = false

    /// Pins for these hosts; for every host if there are none. Nothing is checked yet.
    public init(pins: [Pin], backups: [Pin] = [], hosts: [String] = []) {
        entries = [Entry(hosts: hosts, pins: pins, backups: backups)]
    }

    /// Pins for several groups of hosts. Nothing is checked yet.
    public init(_ entries: [Entry]) {
        self.entries = entries
    }

    /// The pins of keys in use, of all entries.
    public var pins: [Pin] { entries.flatMap(\.pins) }

    /// The pins of backups, of all entries.
    public var backups: [Pin] { entries.flatMap(\.backups) }

    /// The set with more pins, for these hosts; for every host if there are none.
    public func adding(pins: [Pin], backups: [Pin] = [], hosts: [String] = []) -> PinSet {
        var set = self
        set.entries.append(Entry(hosts: hosts, pins: pins, backups: backups))
        return set
    }
}

extension PinSet {
    /// What a set says of a chain.
    package enum Verdict: Hashable, Sendable {
        /// One pin at least is there.
        case matched
        /// No entry means this host.
        case noPinsForHost
        /// The pins are past their time.
        case expired
        /// None is there; these are the pins of the chain.
        case mismatch(offered: [Pin])
    }

    /// Refuses what can only be a mistake: nothing to check, a malformed pin or host, no backup.
    package func validate() throws(CertificateError) {
        guard !entries.isEmpty else { throw CertificateError("the set of pins is empty") }
        for entry in entries {
            let place = entry.hosts.isEmpty ? "" : " for \(entry.hosts.joined(separator: ", "))"
            for host in entry.hosts { _ = try HostPattern(parsing: host) }
            guard !entry.pins.isEmpty else {
                throw CertificateError("the set of pins\(place) has no pin of a key in use")
            }
            for pin in entry.pins + entry.backups {
                guard let problem = pin.problem else { continue }
                throw CertificateError("the pin \(quoted(pin.description)): \(problem)")
            }
            let backups = Set(entry.backups).subtracting(entry.pins)
            guard allowsNoBackup || !backups.isEmpty else {
                throw CertificateError(
                    """
                    the set of pins\(place) has no backup: add the pin of a second key that is kept \
                    elsewhere, or set allowsNoBackup
                    """)
            }
        }
    }

    /// What the set says of a chain: that which was verified, the host's own certificate first, with
    /// `now` in seconds since 1970.
    ///
    /// What cannot be decided is a mismatch: a set that is empty, a host that is no name.
    package func verdict(chainPins: [Pin], host: String, now: Int64) -> Verdict {
        let mismatch = Verdict.mismatch(offered: chainPins)
        guard entries.contains(where: { !$0.pins.isEmpty || !$0.backups.isEmpty }) else {
            return mismatch
        }
        let applicable: [Entry]
        if let name = try? HostPattern(parsing: host), name.wildcard == .none {
            applicable = entries.filter { $0.means(name) }
            if applicable.isEmpty { return .noPinsForHost }
        } else {
            applicable = entries.filter(\.hosts.isEmpty)
            if applicable.isEmpty { return mismatch }
        }
        if let expires, now > expires { return .expired }
        let pins = Set(applicable.flatMap { $0.pins + $0.backups })
        let chain = leafOnly ? chainPins.prefix(1) : chainPins[...]
        return chain.contains { $0.problem == nil && pins.contains($0) } ? .matched : mismatch
    }
}

extension PinSet.Entry {
    /// A malformed pattern, which `validate` refuses, means every host: its pins then fail.
    fileprivate func means(_ host: HostPattern) -> Bool {
        hosts.isEmpty
            || hosts.contains { (try? HostPattern(parsing: $0))?.matches(host) ?? true }
    }
}
