import Foundation

#if canImport(Darwin)
    import Darwin
#else
    // Nothing in this process changes `environ`.
    @preconcurrency import Glibc
#endif

/// The environment of another process: that of this one, byte for byte, and what was changed for the other one.
struct OtherEnvironment: Sendable {
    /// Each variable as `NAME=VALUE`, with a zero at its end.
    private(set) var entries: [[CChar]] = []

    /// Takes over this process's environment.
    init() {
        #if canImport(Darwin)
            guard var entry = _NSGetEnviron().pointee else { return }
        #else
            var entry = environ
        #endif
        while let text = entry.pointee {
            entries.append(Array(UnsafeBufferPointer(start: text, count: strlen(text) + 1)))
            entry += 1
        }
    }

    /// Sets a variable, or removes it if the value is nil.
    mutating func set(_ name: String, _ value: String?) {
        let start = "\(name)=".utf8.map { CChar(bitPattern: $0) }
        entries.removeAll { $0.starts(with: start) }
        if let value { entries.append(Array("\(name)=\(value)".utf8CString)) }
    }
}
