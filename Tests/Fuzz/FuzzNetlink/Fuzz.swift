import FuzzInvariants

/// Any datagram is read or refused, and what was read can be put into a table and evaluated.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    if let fault = netlinkFault(in: bytes) { fatalError(fault) }
    return 0
}
