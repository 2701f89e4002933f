/// The works of WebSocket: beside the limit, and beside other libraries.
enum WebSocketWorks {
    static let all: [Work] =
        [
            echo(size: 64, connections: 1),
            echo(size: 64, connections: 64, bar: .ratio(atMost: 1.35)),
            echo(size: 4_096, connections: 1),
            echo(size: 4_096, connections: 64, bar: .ratio(atMost: 1.35)),
            echo(size: 65_536, connections: 1),
            echo(size: 65_536, connections: 64),
            text,
            stream,
        ]
        + [Peer.libwebsockets, .node].flatMap { peer in
            [
                echo(size: 64, connections: 64), echo(size: 4_096, connections: 64), stream,
            ].map { $0.measured(beside: peer) }
        } + [
            Work(
                name: "ws-deflate-4096x64", mode: "ws-deflate",
                load: ["pingpong", "--size", "4096", "--conns", "64"]
            ).measured(beside: .node)
        ]

    private static func echo(size: Int, connections: Int, bar: Bar? = nil) -> Work {
        Work(
            name: "ws-echo-\(size)x\(connections)", mode: "ws",
            load: ["pingpong", "--size", String(size), "--conns", String(connections)], bar: bar)
    }

    private static let text = Work(
        name: "ws-echo-4096x64-text", mode: "ws",
        load: ["pingpong", "--size", "4096", "--conns", "64", "--text"])

    /// Eight messages in flight.
    private static let stream = Work(
        name: "ws-stream", mode: "ws",
        load: ["stream", "--size", "16384", "--window", "131072"], unit: .gigabyte,
        rateBar: .rate(atLeast: 0.7))
}

extension Work {
    /// The same with another library in the place of C, and no bar.
    fileprivate func measured(beside peer: Peer) -> Work {
        var work = Work(
            name: "\(name)-beside-\(peer.rawValue)", mode: mode, load: load, unit: unit)
        work.beside = .peer(peer)
        return work
    }
}
