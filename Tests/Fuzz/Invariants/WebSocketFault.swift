internal import TowpathWire

/// What is wrong with how the bytes behind the first one are heard by a session; nil if nothing is.
///
/// The first byte says by which:
///
///     bit 0      a server
///     bit 1      messages may be compressed
///     bit 2      each by itself
///     bit 3      with a small window
///     bits 4, 5  limits: 0: 64 KiB; 1: 100 bytes; 2: frames of 20 bytes; 3: none
///
/// The events and the code of the error are the same whether the bytes come at once or one by one; only which
/// of two wrongs of a compressed text is seen first may depend on it, and whether it is seen that one points
/// back beyond a small window. No message exceeds the limit, texts
/// are UTF-8, what a Close frame says can be sent. What was heard can be sent, and is then heard again.
package func webSocketFault(in bytes: [UInt8]) -> String? {
    guard let first = bytes.first else { return nil }
    let setting = Setting(first)
    let input = Array(bytes.dropFirst())
    let whole = setting.hear([input])
    let single = setting.hear(input.map { [$0] })
    let isBeyondWindow = setting.hasSmallWindow && single.code == .invalidFramePayloadData
    if !isBeyondWindow, whole.events != single.events {
        return "\(whole) at once, \(single) one by one"
    }
    if !isBeyondWindow, whole.code != single.code {
        let both = [whole.code, single.code]
        guard setting.deflate != nil, both.contains(.messageTooBig),
            both.contains(.invalidFramePayloadData)
        else { return "\(whole) at once, \(single) one by one" }
    }
    if let code = whole.code, !code.isSendable { return "an error has the code \(code)" }
    for event in whole.events {
        if let fault = setting.fault(event) { return "\(event): \(fault)" }
    }
    return setting.fault(sendingAgain: whole.events)
}

private struct Heard {
    var events: [WebSocketSession.Event] = []
    var code: WebSocketCloseCode?
}

private struct Setting {
    let role: WebSocketSession.Role
    let deflate: PermessageDeflate?
    let hasSmallWindow: Bool
    var limits = WebSocketSession.Limits()

    init(_ byte: UInt8) {
        role = byte & 1 == 0 ? .client : .server
        var offer = "permessage-deflate"
        if byte & 4 != 0 { offer += "; client_no_context_takeover; server_no_context_takeover" }
        hasSmallWindow = byte & 8 != 0
        if hasSmallWindow { offer += "; client_max_window_bits=9; server_max_window_bits=8" }
        deflate = byte & 2 == 0 ? nil : agreement(on: offer)
        limits.maximumMessageSize = [65_536, 100, 65_536, .max][Int(byte >> 4 & 3)]
        limits.maximumFrameSize = byte >> 4 & 3 == 2 ? 20 : nil
    }

    func session(_ role: WebSocketSession.Role) -> WebSocketSession {
        var compression = PermessageDeflate.Configuration()
        compression.minimumSize = 3
        return WebSocketSession(role, limits: limits, deflate: deflate, compression: compression)
    }

    func hear(_ pieces: [[UInt8]]) -> Heard {
        var session = session(role)
        return session.hear(pieces)
    }

    func fault(_ event: WebSocketSession.Event) -> String? {
        switch event {
        case .message(let message):
            let count = message.bytes.count
            return count > limits.maximumMessageSize ? "\(count) bytes are too many" : nil
        case .ping(let payload), .pong(let payload):
            return payload.count > 125 ? "\(payload.count) bytes are too many" : nil
        case .close(let status):
            guard status.code == .noStatusReceived || status.code.isSendable else {
                return "a code that is not sent"
            }
            return status.reason.utf8.count > 123 ? "a reason of more than 123 bytes" : nil
        }
    }

    func fault(sendingAgain events: [WebSocketSession.Event]) -> String? {
        var sender = session(role == .client ? .server : .client)
        let key: UInt32? = role == .client ? nil : 0x1234_5678
        var frames: [UInt8] = []
        for event in events {
            switch event {
            case .message(.text(let text)):
                sender.append(.text, Array(text.utf8), key, to: &frames)
            case .message(.binary(let bytes)): sender.append(.binary, bytes, key, to: &frames)
            case .ping(let payload):
                frames += WebSocketSession.control(.ping, payload, maskKey: key)
            case .pong(let payload):
                frames += WebSocketSession.control(.pong, payload, maskKey: key)
            case .close(let status):
                frames += WebSocketSession.control(.close, status.payload, maskKey: key)
            }
        }
        var limits = limits
        limits.maximumFrameSize = nil
        var again = WebSocketSession(role, limits: limits, deflate: deflate)
        let heard = again.hear([frames])
        guard heard.code == nil, heard.events == events else {
            return "\(events) were sent, and \(heard) heard"
        }
        return nil
    }
}

extension WebSocketSession {
    fileprivate mutating func hear(_ pieces: [[UInt8]]) -> Heard {
        var heard = Heard()
        for piece in pieces where heard.code == nil {
            piece.withUnsafeBytes { piece in
                var rest = piece
                do throws(WebSocketError) {
                    while let event = try next(&rest) { heard.events.append(event) }
                } catch {
                    heard.code = error.code
                }
            }
        }
        return heard
    }

    fileprivate mutating func append(
        _ opcode: WebSocketOpcode, _ payload: [UInt8], _ key: UInt32?, to output: inout [UInt8]
    ) {
        payload.withUnsafeBytes {
            append(
                opcode, $0, compressing: compresses(payload.count), maskKey: key, to: &output)
        }
    }
}

/// What a server of any window agrees to.
private func agreement(on offer: String) -> PermessageDeflate? {
    let lines = [
        "GET / HTTP/1.1", "Host: a", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Extensions: \(offer)", "", "",
    ]
    var configuration = PermessageDeflate.Configuration()
    configuration.windowBits = 15
    guard let head = try? HTTPRequestHead(parsing: Array(lines.joined(separator: "\r\n").utf8)),
        let request = try? WebSocketRequest(head),
        let acceptance = try? WebSocketHandshake.acceptance(
            of: request, accept: "", subprotocol: nil, fields: [], compression: configuration)
    else { return nil }
    return acceptance.0.deflate
}
