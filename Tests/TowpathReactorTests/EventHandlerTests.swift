import Testing
import TowpathReactor

@Suite("Ready events")
struct ReadyEventsTests {
    private static let all: [ReadyEvents] = [
        .input, .output, .inputEnd, .hangUp, .error, .urgent,
    ]

    @Test("bytes, an end and an error are something to read")
    func readable() {
        #expect(Self.all.filter(\.isReadable) == [.input, .inputEnd, .hangUp, .error])
    }

    @Test("room, an end and an error let a writer go on")
    func writable() {
        #expect(Self.all.filter(\.isWritable) == [.output, .hangUp, .error])
    }

    @Test("after an end, an error or a mark a short read does not mean empty")
    func marks() {
        #expect(Self.all.filter(\.marksInput) == [.inputEnd, .hangUp, .error, .urgent])
    }

    @Test("the bits are epoll's")
    func bits() {
        #expect(Self.all.map(\.rawValue) == [0x001, 0x004, 0x2000, 0x010, 0x008, 0x002])
    }
}
