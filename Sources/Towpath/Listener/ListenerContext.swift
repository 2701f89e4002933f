/// What the connections of one listener share.
final class ListenerContext: Sendable {
    let drain = DrainSignal()
}
