import FuzzInvariants

/// A handshake that was tampered with, or bytes that are none, end as they must.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    if let fault = handshakeFault(in: bytes) { fatalError(fault) }
    return 0
}
