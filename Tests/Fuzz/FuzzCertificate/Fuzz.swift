import FuzzInvariants

/// Any bytes are read as certificates, keys and pins, or refused.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    if let fault = certificateFault(in: bytes) { fatalError(fault) }
    return 0
}
