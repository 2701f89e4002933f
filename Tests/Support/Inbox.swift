/// What a test waits for: values sent from any thread, taken in order.
///
/// A wait ends when its task is cancelled, so a suite's `.timeLimit` is the guard.
package final class Inbox<Element: Sendable>: Sendable {
    private let stream: AsyncStream<Element>
    private let continuation: AsyncStream<Element>.Continuation

    package init() { (stream, continuation) = AsyncStream.makeStream() }

    package func send(_ element: Element) { continuation.yield(element) }

    /// No more values will come.
    package func finish() { continuation.finish() }

    /// The next value; throws if the test was given up, or none will come.
    package func next() async throws -> Element {
        for await element in stream { return element }
        throw CancellationError()
    }

    package func next(_ count: Int) async throws -> [Element] {
        var elements: [Element] = []
        while elements.count < count { elements.append(try await next()) }
        return elements
    }
}

extension Inbox where Element == Void {
    package func send() { send(()) }
}
