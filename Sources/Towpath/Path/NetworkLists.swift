internal import TowpathReactor
internal import TowpathWire

/// What the kernel lists: everything that an observer begins with.
struct NetworkLists: Sendable {
    /// How often an interrupted list is asked for again, and how many milliseconds later: a storm must
    /// not keep the reader for ever.
    private static let pauses: [Int32] = [10, 50, 250]
    /// From so many routes on, the lists are left out and the kernel's answers alone count: they would
    /// cost milliseconds after every change.
    private static let routeLimit = 5_000

    var table = NetworkTable()
    /// The tables that rules lead to, by family.
    var ruleTables: [AddressFamily: [UInt32]] = [:]
    /// The kernel knows no such tables, until it announces a route in one of them.
    var missingTables: [AddressFamily: Set<UInt32>] = [:]
    /// There are too many routes to be listed each time.
    var hasManyRoutes = false
    /// The lists are from a time of change, and another look is due.
    var isDoubtful = false

    /// What was found in another way.
    init(table: NetworkTable) { self.table = table }

    /// Lists links, addresses and rules. Blocks for the pauses, if the lists are interrupted.
    init(from client: NetlinkClient, mayPause: Bool) throws(SystemError) {
        for pause in [0] + (mayPause ? Self.pauses : []) {
            if pause > 0 { BlockingPause.milliseconds(pause) }
            isDoubtful = false
            table = NetworkTable()
            // One after the other: the kernel refuses two at a time.
            for message in try list(client, NetlinkRequest.links) { _ = table.apply(message) }
            for message in try list(client, NetlinkRequest.addresses) { _ = table.apply(message) }
            if !isDoubtful { break }
        }
        readRules(from: client)
    }

    private mutating func list(
        _ client: NetlinkClient, _ request: (UInt32) -> [UInt8]
    ) throws(SystemError) -> [RouteNetlink] {
        let list = try client.list(request)
        if list.isInterrupted { isDoubtful = true }
        return list.messages
    }

    mutating func readRules(from client: NetlinkClient) {
        for family in [AddressFamily.ipv4, .ipv6] {
            ruleTables[family] = Self.ruleTables(client, family)
        }
    }

    private static func ruleTables(
        _ client: NetlinkClient, _ family: AddressFamily
    ) -> [UInt32] {
        var tables = [RouteMessage.tableMain]
        // A kernel without policy routing has no rules.
        guard
            let rules = try? client.list({ NetlinkRequest.rules(family, sequence: $0) }).messages
        else { return tables }
        for case .rule(let rule) in rules {
            // 255 is the table of the host's own addresses.
            guard let table = rule.table, table != 255, !tables.contains(table) else { continue }
            tables.append(table)
        }
        return tables
    }

    /// The routes to everywhere, or to half of it.
    mutating func defaults(from client: NetlinkClient) -> [RouteMessage] {
        guard !hasManyRoutes else { return [] }
        var defaults: [RouteMessage] = []
        var count = 0
        for (family, tables) in ruleTables.sorted(by: { $0.key == .ipv4 && $1.key == .ipv6 }) {
            for table in tables where missingTables[family]?.contains(table) != true {
                let list: NetlinkClient.List
                do throws(SystemError) {
                    list = try client.list {
                        NetlinkRequest.routes(family, table: table, sequence: $0)
                    }
                } catch {
                    if error.kind == .noSuchFile {
                        missingTables[family, default: []].insert(table)
                    }
                    continue
                }
                count += list.messages.count
                for case .newRoute(let route, _) in list.messages
                where route.table == table && route.isDefault { defaults.append(route) }
            }
        }
        hasManyRoutes = count > Self.routeLimit
        return defaults
    }
}

extension RouteMessage {
    /// To everywhere, to one half of it, or to all global IPv6 addresses.
    fileprivate var isDefault: Bool {
        guard kind == .unicast else { return false }
        if destinationLength <= 1 { return true }
        guard destinationLength == 3, case .v6(let address)? = destination else { return false }
        return address.high == 0x2000_0000_0000_0000
    }
}
