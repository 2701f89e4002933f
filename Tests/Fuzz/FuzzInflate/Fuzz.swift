import FuzzInvariants

/// Any bytes are inflated up to a limit or refused, and what came out can be deflated and inflated again.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    if let fault = inflateFault(in: bytes) { fatalError(fault) }
    return 0
}
