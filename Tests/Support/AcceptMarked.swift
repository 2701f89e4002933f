import CTowpathLinux

/// accept(2), blocking, with a descriptor that no other program inherits.
package func acceptMarked(_ listening: Int32) -> Int32 {
    accept4(listening, nil, nil, Int32(SOCK_CLOEXEC.rawValue))
}
