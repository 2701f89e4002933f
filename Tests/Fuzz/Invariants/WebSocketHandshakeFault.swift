internal import TowpathWire

/// What is wrong with how the bytes are read as the head of a request or response, and as a side's part of
/// an opening handshake; nil if nothing is.
///
/// What is no head is refused with a reason. A head that was read is written, and read again as the same. A
/// request that is accepted is answered, and the answer is read by the client that made the request.
package func webSocketHandshakeFault(in bytes: [UInt8]) -> String? {
    requestFault(bytes) ?? responseFault(bytes) ?? listFault(bytes)
}

private func requestFault(_ bytes: [UInt8]) -> String? {
    let head: HTTPRequestHead
    do throws(HTTPError) { head = try HTTPRequestHead(parsing: bytes) } catch {
        return error.message.isEmpty ? "no reason" : nil
    }
    let first = "\(head.method) \(head.target) HTTP/1.\(head.minorVersion)"
    guard (try? HTTPRequestHead(parsing: written(first, head.fields))) == head else {
        return "\(head) is not read again"
    }
    let request: WebSocketRequest
    do throws(WebSocketRefusal) { request = try WebSocketRequest(head) } catch {
        return fault(error)
    }
    guard request.key.utf8.count == 24,
        Set(request.subprotocols).count == request.subprotocols.count
    else { return "\(request): is accepted" }
    for keepsContext in [true, false] {
        var configuration = PermessageDeflate.Configuration()
        configuration.keepsContext = keepsContext
        if let fault = fault(request, configuration) { return "\(request): \(fault)" }
    }
    return nil
}

/// The answer to a request; read by a client that offered anything.
private func fault(
    _ request: WebSocketRequest, _ compression: PermessageDeflate.Configuration
) -> String? {
    let subprotocol = request.subprotocols.last
    guard
        let (agreement, answer) = try? WebSocketHandshake.acceptance(
            of: request, accept: accept, subprotocol: subprotocol, fields: [],
            compression: compression)
    else { return "no answer" }
    guard let head = try? HTTPResponseHead(parsing: answer), head.status == 101 else {
        return "the answer is no head"
    }
    var offer = WebSocketHandshake.Offer(target: "/", host: "a", key: request.key)
    offer.subprotocols = request.subprotocols
    offer.compression = PermessageDeflate.Configuration()
    offer.compression?.windowBits = 15
    guard let read = try? WebSocketHandshake.agreement(head, to: offer, accept: accept) else {
        return "\(head) is refused"
    }
    guard read.subprotocol == agreement.subprotocol,
        (read.deflate == nil) == (agreement.deflate == nil)
    else { return "\(agreement) is read as \(read)" }
    return nil
}

private func fault(_ refusal: WebSocketRefusal) -> String? {
    guard
        let bytes = try? WebSocketHandshake.refusal(
            status: refusal.status, fields: refusal.fields, body: refusal.message)
    else { return "\(refusal) cannot be written" }
    let head = Array(bytes.dropLast(refusal.message.utf8.count))
    guard let head = try? HTTPResponseHead(parsing: head), head.status == refusal.status else {
        return "\(refusal) is no head"
    }
    return refusal.message.isEmpty ? "no reason" : nil
}

private func responseFault(_ bytes: [UInt8]) -> String? {
    let head: HTTPResponseHead
    do throws(HTTPError) { head = try HTTPResponseHead(parsing: bytes) } catch {
        return error.message.isEmpty ? "no reason" : nil
    }
    let first = "HTTP/1.\(head.minorVersion) \(head.status) \(head.reason)"
    guard (try? HTTPResponseHead(parsing: written(first, head.fields))) == head else {
        return "\(head) is not read again"
    }
    var offer = WebSocketHandshake.Offer(target: "/", host: "a", key: "")
    offer.subprotocols = ["chat", "superchat"]
    offer.compression = PermessageDeflate.Configuration()
    offer.compression?.windowBits = 12
    do throws(WebSocketError) {
        let agreement = try WebSocketHandshake.agreement(head, to: offer, accept: accept)
        let values = head.fields.values(of: "Sec-WebSocket-Accept")
        guard values.count == 1, values[0].utf8.elementsEqual(accept.utf8) else {
            return "\(values) are accepted"
        }
        if let chosen = agreement.subprotocol {
            guard offer.subprotocols.contains(where: { $0.utf8.elementsEqual(chosen.utf8) }) else {
                return "\(chosen) is accepted"
            }
        }
        return nil
    } catch {
        return error.message.isEmpty || error.code != .protocolError ? "no reason" : nil
    }
}

/// A list that was read and is written in quotes is read as the same.
private func listFault(_ bytes: [UInt8]) -> String? {
    let text = String(decoding: bytes, as: UTF8.self)
    guard let list = HTTPParameterized.list([text]) else { return nil }
    let members = list.map { member in
        member.list.reduce(into: member.name) { text, parameter in
            text += "; \(parameter.name)"
            guard let value = parameter.value else { return }
            text += "=\"" + value.map { "\\\"".contains($0) ? "\\\($0)" : "\($0)" }.joined() + "\""
        }
    }
    guard HTTPParameterized.list([members.joined(separator: ",")]) == list else {
        return "\(text.debugDescription) is read otherwise as \(members)"
    }
    return nil
}

private let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

private func written(_ first: String, _ fields: HTTPFields) -> [UInt8] {
    Array((first + "\r\n" + fields.map { "\($0)\r\n" }.joined() + "\r\n").utf8)
}
