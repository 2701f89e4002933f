/// What a test waits for: values sent from any thread, taken in order.
///
/// A wait ends when its task is cancelled, so a suite's `.timeLimit` is the guard.
final class Inbox<Element: Sendable>: Sendable {
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

    func next(_ count: Int) async -> [Element] {
        var elements: [Element] = []
        while elements.count < count, let element = await next() { elements.append(element) }
        return elements
    }
}
