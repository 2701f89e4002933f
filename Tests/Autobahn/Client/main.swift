import Glibc
import Towpath

// The client side of Autobahn's suite: AutobahnClient ADDRESS FIRST-CASE. Walks the cases from that one
// on, each a connection of its own that sends back what it receives, and asks for the reports then.

/// Cases send 16 MiB at once; the one limit that is ours to choose must not be what ends them.
func open(_ path: String, _ address: Endpoint) -> Connection<WebSocket> {
    Connection(to: address) { WebSocket(path: path) { TCP() }.maximumMessageSize(64 << 20) }
}

func caseCount(_ address: Endpoint) async throws -> Int {
    let connection = open("/getCaseCount", address)
    defer { connection.abort() }
    guard case .text(let text) = try await connection.receive(), let count = Int(text) else {
        throw Failure(description: "the number of cases is none")
    }
    return count
}

/// Whatever the connection throws is what the case provokes; the suite judges what it saw of us.
func runCase(_ number: Int, _ address: Endpoint) async {
    let connection = open("/runCase?case=\(number)&agent=towpath", address)
    do {
        for try await message in connection.messages { try await connection.send(message) }
    } catch {
        say("case \(number): \(error)")
    }
    await connection.close()
}

func walk(_ address: Endpoint, from first: Int) async throws {
    let count = try await caseCount(address)
    if first <= count {
        for number in first...count {
            say("case \(number)")
            await runCase(number, address)
        }
    }
    let connection = open("/updateReports?agent=towpath", address)
    for try await _ in connection.messages {}
    await connection.close()
}

struct Failure: Error, CustomStringConvertible {
    let description: String
}

func say(_ line: String) {
    let bytes = Array("\(line)\n".utf8)
    _ = write(1, bytes, bytes.count)
}

do {
    guard CommandLine.arguments.count == 3, let first = Int(CommandLine.arguments[2]) else {
        throw Failure(description: "usage: AutobahnClient ADDRESS FIRST-CASE")
    }
    try await walk(Endpoint(parsing: CommandLine.arguments[1]), from: first)
} catch {
    say("\(error)")
    exit(1)
}
