/// What kind of network an interface belongs to.
public enum InterfaceType: String, Hashable, Sendable, CaseIterable {
    /// A wireless LAN.
    case wifi
    /// A mobile network, through a modem.
    case cellular
    /// Ethernet, also the virtual one of a container.
    case wiredEthernet
    /// The host itself.
    case loopback
    /// Tunnels and everything else.
    case other
}
