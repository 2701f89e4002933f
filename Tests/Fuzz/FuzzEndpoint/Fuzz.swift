import FuzzInvariants

/// Any bytes are read as an endpoint or refused, and what was read can be printed and read again.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    if let fault = endpointFault(in: bytes) { fatalError(fault) }
    return 0
}
