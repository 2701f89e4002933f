import FuzzInvariants

/// Any bytes are heard as messages or refused, alike however they come.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    if let fault = webSocketFault(in: bytes) { fatalError(fault) }
    return 0
}
