import TowpathReactor

/// What a test waits for: values sent from any thread, taken in order.
///
/// A wait ends when its task is cancelled, so a suite's `.timeLimit` is the guard.
final class StreamInbox<Element: Sendable>: Sendable {
    private let stream: AsyncStream<Element>
    private let continuation: AsyncStream<Element>.Continuation

    init() {
        (stream, continuation) = AsyncStream.makeStream()
    }

    func send(_ element: Element) {
        continuation.yield(element)
    }

    /// The next value; nil if the test was given up.
    func next() async -> Element? {
        for await element in stream { return element }
        return nil
    }

    /// The next values.
    func next(_ count: Int) async -> [Element] {
        var elements: [Element] = []
        while elements.count < count, let element = await next() { elements.append(element) }
        return elements
    }
}

/// A locked value that closures on several threads can hold.
final class StreamShared<Value: Sendable>: Sendable {
    private let locked: Locked<Value>

    init(_ value: Value) {
        locked = Locked(value)
    }

    var value: Value { locked.withLock { $0 } }

    func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        try locked.withLock(body)
    }
}

/// A small generator with a seed, so that a failure can be repeated.
struct StreamRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
