internal import TowpathReactor

/// How much one connection may do in one turn of its loop. Without it a receive that never parks
/// never lets the other connections have their turn.
struct TurnBudget {
    /// Four reads of the largest size. A smaller budget costs a stream one more turn for each.
    static let byteLimit = 262_144
    static let callLimit: UInt16 = 16

    private var turn: UInt32 = 0
    private var calls: UInt16 = 0
    private var bytes = 0

    /// Callers on other threads hold up nobody and are not counted.
    mutating func isSpent(on loop: EventLoop) -> Bool {
        guard loop.isCurrent else { return false }
        guard turn == loop.turn else {
            turn = loop.turn
            calls = 0
            bytes = 0
            return false
        }
        return calls >= Self.callLimit || bytes >= Self.byteLimit
    }

    mutating func spend(_ byteCount: Int) {
        calls &+= 1
        bytes &+= byteCount
    }
}
