import CTowpathLinux
import Glibc
import TestSupport
import Testing
import TowpathReactor

@Suite("Event loop: registrations", .timeLimit(.minutes(1)))
struct EventLoopRegistrationTests {
    private let stream: ReadyEvents = [.input, .output, .inputEnd]

    @Test("what is ready already is told at once, what becomes ready when it does")
    func edges() async throws {
        try await withLoop { loop in
            let (near, far) = try Holder.pair()
            let recorder = Recorder()
            let token = try loop.register(near.descriptor, for: stream, handler: recorder)
            #expect(try await recorder.events.next() == .output)
            _ = far.descriptor.send([1])
            #expect(try await recorder.events.next() == [.input, .output])
            far.descriptor.shutdownOutput()
            #expect(try await recorder.events.next() == [.input, .output, .inputEnd])
            loop.deregister(near.descriptor, token: token)
        }
    }

    @Test("handlers run on the loop's thread")
    func place() async throws {
        try await withLoop { loop in
            let places = Inbox<Bool>()
            let recorder = Recorder(onEvents: { _ in places.send(loop.isCurrent) })
            let pair = try Holder.pair()
            _ = try loop.register(pair.near.descriptor, for: .output, handler: recorder)
            #expect(try await places.next() == true)
        }
    }

    @Test("an edge is told once, though nobody reads; the next bytes are another")
    func once() async throws {
        try await withLoop { loop in
            let (near, far) = try Holder.pair()
            let count = Shared(0)
            let recorder = Recorder(onEvents: { _ in count.withLock { $0 += 1 } })
            _ = try loop.register(near.descriptor, for: .input, handler: recorder)
            for expected in 1...5 {
                _ = far.descriptor.send([1])
                #expect(try await recorder.events.next() == .input)
                let turns = try await loop.turns(during: .milliseconds(5))
                #expect(turns < 10)
                #expect(count.withLock { $0 } == expected)
            }
        }
    }

    @Test("modifying tells again what is ready, and only what is asked for")
    func modify() async throws {
        try await withLoop { loop in
            let pair = try Holder.pair()
            let recorder = Recorder()
            let token = try loop.register(pair.near.descriptor, for: .input, handler: recorder)
            for _ in 0..<3 {
                loop.modify(pair.near.descriptor, token: token, for: [.input, .output])
                #expect(try await recorder.events.next() == .output)
            }
            loop.deregister(pair.near.descriptor, token: token)
        }
    }

    @Test("the end of a peer is a hang-up that can be read")
    func hangUp() async throws {
        try await withLoop { loop in
            let (number, far) = try Descriptor.pair(.stream)
            let near = Holder(number)
            let recorder = Recorder()
            _ = try loop.register(near.descriptor, for: [.input, .inputEnd], handler: recorder)
            do { _ = Descriptor(owning: far) }
            let events = try await recorder.events.next()
            #expect(events.isSuperset(of: [.input, .inputEnd, .hangUp]))
            #expect(near.descriptor.receive() == .end)
        }
    }

    @Test("what epoll does not take is an error, and leaves nothing behind")
    func failure() async throws {
        try await withLoop { loop in
            let file = Descriptor(owning: Int32(shim_open_read("/proc/self/exe")))
            #expect(throws: SystemError(EPERM, "epoll_ctl")) {
                _ = try loop.register(file, for: .input, handler: Recorder())
            }
            #expect(loop.registrationCount == 0)
        }
    }

    @Test("a second registration of a descriptor fails and the first stays")
    func twice() async throws {
        try await withLoop { loop in
            let (near, far) = try Holder.pair()
            let recorder = Recorder()
            _ = try loop.register(near.descriptor, for: .input, handler: recorder)
            #expect(throws: SystemError(EEXIST, "epoll_ctl")) {
                _ = try loop.register(near.descriptor, for: .input, handler: Recorder())
            }
            #expect(loop.registrationCount == 1)
            _ = far.descriptor.send([1])
            #expect(try await recorder.events.next() == .input)
        }
    }

    @Test("after its end a registration hears nothing and its handler is let go")
    func deregister() async throws {
        try await withLoop { loop in
            let (near, far) = try Holder.pair()
            let heard = Shared(0)
            weak var handler: Recorder?
            do {
                let recorder = Recorder(onEvents: { _ in heard.withLock { $0 += 1 } })
                handler = recorder
                let token = try loop.register(near.descriptor, for: .input, handler: recorder)
                #expect(loop.registrationCount == 1)
                loop.deregister(near.descriptor, token: token)
            }
            #expect(loop.registrationCount == 0)
            _ = far.descriptor.send([1])
            try await loop.settle()
            #expect(heard.withLock { $0 } == 0)
            #expect(handler == nil)
        }
    }

    @Test("R-05: ending a registration twice does not touch the slot's next owner")
    func deregisterTwice() async throws {
        try await withLoop { loop in
            let pair = try Holder.pair()
            let near = pair.near
            let earlier = try loop.register(near.descriptor, for: .input, handler: Recorder())
            loop.deregister(near.descriptor, token: earlier)
            let (other, otherFar) = try Holder.pair()
            let recorder = Recorder()
            let later = try loop.register(other.descriptor, for: .input, handler: recorder)
            #expect(earlier != later)
            loop.deregister(near.descriptor, token: earlier)
            #expect(loop.registrationCount == 1)
            _ = otherFar.descriptor.send([1])
            #expect(try await recorder.events.next() == .input)
            loop.deregister(other.descriptor, token: later)
        }
    }

    @Test("BR-005 (a): the next owner of a closed number hears nothing meant for the earlier one")
    func numberReuse() async throws {
        try await withLoop { loop in
            let (first, firstFar) = try Holder.pair()
            let (second, secondFar) = try Holder.pair()
            let (third, thirdFar) = try Holder.pair()
            let heardByThird = Inbox<ReadyEvents>()
            let thirdHandler = Recorder(onEvents: { heardByThird.send($0) })
            let tokens = Shared<[Token]>([])

            // The first's handler closes the second and gives its number to the third, in one step,
            // so that no other test can take the number in between.
            let firstHandler = Recorder(onEvents: { _ in
                guard let token = tokens.withLock({ $0.popLast() }) else { return }
                loop.deregister(second.descriptor, token: token)
                dup2(third.descriptor.number, second.descriptor.number)
                if let token = try? loop.register(
                    second.descriptor, for: .input, handler: thirdHandler)
                {
                    tokens.withLock { $0.append(token) }
                }
            })

            let gate = Gate()
            Task(executorPreference: loop) { gate.wait() }
            _ = try loop.register(first.descriptor, for: .input, handler: firstHandler)
            let token = try loop.register(second.descriptor, for: .input, handler: Recorder())
            tokens.withLock { $0.append(token) }
            _ = firstFar.descriptor.send([1])
            _ = secondFar.descriptor.send([2])
            gate.open()

            #expect(try await firstHandler.events.next() == .input)
            try await loop.settle()
            #expect(loop.registrationCount == 2)
            #expect(tokens.withLock { $0.first } != token)
            // What the third hears first is its own.
            thirdFar.descriptor.shutdownOutput()
            #expect(try await heardByThird.next() == .input)
            #expect(second.descriptor.receive() == .end)
        }
    }

    @Test("BR-005 (b): a duplicate of a closed descriptor wakes nobody")
    func duplicate() async throws {
        try await withLoop { loop in
            let (number, farNumber) = try Descriptor.pair(.stream)
            let far = Holder(farNumber)
            let heard = Shared(0)
            let recorder = Recorder(onEvents: { _ in heard.withLock { $0 += 1 } })
            let copy: Holder
            do {
                let near = Descriptor(owning: number)
                copy = Holder(try near.duplicate().release())
                let token = try loop.register(near, for: .input, handler: recorder)
                loop.deregister(near, token: token)
            }
            _ = far.descriptor.send([1])
            let turns = try await loop.turns(during: .milliseconds(50))
            #expect(turns < 10)
            _ = far.descriptor.send([2])
            let later = try await loop.turns(during: .milliseconds(50))
            #expect(later < 10)
            #expect(heard.withLock { $0 } == 0)
            #expect(copy.descriptor.receive() == .bytes([1, 2]))
        }
    }

    @Test("a thousand registrations come and go without growth")
    func comeAndGo() async throws {
        try await withLoop { loop in
            let pair = try Holder.pair()
            for generation in 1...1_000 {
                let token = try loop.register(
                    pair.near.descriptor, for: stream, handler: Recorder())
                #expect(token == Token(slot: 0, generation: UInt32(generation)))
                loop.deregister(pair.near.descriptor, token: token)
            }
            #expect(loop.registrationCount == 0)
        }
    }

    @Test("more descriptors than one wait can report are all heard")
    func many() async throws {
        try await withLoop { loop in
            let pair = try Holder.pair()
            _ = pair.far.descriptor.send([1])
            let recorder = Recorder()
            // Duplicates, and few: an ordinary user has 1,024 descriptors for all tests together.
            let copies = try (0..<300).map { _ in
                Holder(try pair.near.descriptor.duplicate().release())
            }
            for copy in copies {
                _ = try loop.register(copy.descriptor, for: .input, handler: recorder)
            }
            #expect(try await recorder.events.next(300).count == 300)
            #expect(loop.registrationCount == 300)
        }
    }

    @Test("a handler may register, deregister and schedule")
    func reentrancy() async throws {
        try await withLoop { loop in
            let pair = try Holder.pair()
            let otherPair = try Holder.pair()
            let inner = Recorder()
            let outer = Recorder(onEvents: { _ in
                _ = loop.schedule(at: 0, inner, tag: 7)
                guard
                    let token = try? loop.register(
                        otherPair.near.descriptor, for: .output, handler: inner)
                else { return }
                loop.modify(otherPair.near.descriptor, token: token, for: .output)
            })
            _ = try loop.register(pair.near.descriptor, for: .output, handler: outer)
            #expect(try await inner.tags.next() == 7)
            #expect(try await inner.events.next() == .output)
        }
    }
}
