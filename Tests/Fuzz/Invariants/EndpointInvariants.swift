internal import TowpathWire

/// What is wrong with how the bytes are read as endpoints and addresses; nil if nothing is.
///
/// Every reader must take any text without trapping. What it accepts must print as a text that
/// the same reader, and for endpoints the general one too, reads as an equal value and prints as
/// the same bytes; what it refuses must have a reason.
package func endpointFault(in bytes: [UInt8]) -> String? {
    let text = String(decoding: bytes, as: UTF8.self)
    return fault(text, by: Endpoint.init(parsing:), Endpoint.init(parsing:))
        ?? fault(text, by: Endpoint.parseListener, Endpoint.parseListener)
        ?? fault(text, by: Endpoint.parseListener, Endpoint.init(parsing:))
        ?? fault(
            text, by: { text throws(AddressError) in try Endpoint(parsing: text, defaultPort: 80) },
            Endpoint.init(parsing:))
        ?? fault(text, by: IPAddress.init(parsing:), IPAddress.init(parsing:))
        ?? fault(text, by: Host.init(parsing:), Host.init(parsing:))
}

private func fault<Value: Equatable & CustomStringConvertible>(
    _ text: String, by read: (String) throws(AddressError) -> Value,
    _ readAgain: (String) throws(AddressError) -> Value
) -> String? {
    let value: Value
    do {
        value = try read(text)
    } catch {
        return error.message.isEmpty ? "\(text.debugDescription): refused without a reason" : nil
    }
    let printed = value.description
    guard let again = try? readAgain(printed) else {
        return "\(text.debugDescription): \(printed.debugDescription) is refused"
    }
    // Strings are equal by canonical equivalence; endpoints must not change a byte.
    guard again == value, again.description.utf8.elementsEqual(printed.utf8) else {
        return "\(text.debugDescription): \(printed.debugDescription) is read as \(again)"
    }
    return nil
}
