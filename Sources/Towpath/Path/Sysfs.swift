internal import TowpathReactor
internal import TowpathWire

/// What sysfs knows of an interface that netlink does not tell: whether it is a radio.
enum Sysfs {
    /// Nil where there is nothing to add.
    static func type(of name: String) -> InterfaceType? {
        let folder = "/sys/class/net/\(name)"
        if FileLinks.exists("\(folder)/phy80211") || FileLinks.exists("\(folder)/wireless") {
            return .wifi
        }
        guard let bytes = FileLinks.contents(of: "\(folder)/uevent") else { return nil }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        if lines.contains("DEVTYPE=wlan") { return .wifi }
        return lines.contains("DEVTYPE=wwan") ? .cellular : nil
    }
}
