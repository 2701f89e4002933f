import FuzzInvariants

/// Any head is accepted or refused by both sides of a handshake, and what is accepted keeps to the rules.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    if let fault = webSocketHandshakeFault(in: bytes) { fatalError(fault) }
    return 0
}
