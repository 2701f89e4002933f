internal import CTowpathLinux

/// The process's environment, as far as the library reads it.
package enum Environment {
    package static func value(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }

    package static var processID: Int32 { getpid() }
}
