#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What the system says of the file system of a file that perhaps does not exist.
package struct FileSystem {
    private var status = statvfs()
    private let isKnown: Bool

    /// Asks for the file system of a file, or of the folder in which it would be.
    package init(of path: String) {
        let folder =
            path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : path[..<$0] } ?? "."
        isKnown = statvfs(path, &status) == 0 || statvfs(String(folder), &status) == 0
    }

    /// Whether another file can be made. Some file systems don't count inodes, and have 0 of them.
    package var hasInodes: Bool { !isKnown || status.f_files == 0 || status.f_favail > 0 }

    /// How many bytes are free for programs without privileges; nil if the system does not say, or names no bound.
    package var freeBytes: UInt64? {
        let (bytes, isTooMany) = UInt64(status.f_bavail)
            .multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return isKnown && !isTooMany ? bytes : nil
    }

    /// Whether it is mounted read-only.
    package var isReadOnly: Bool { isKnown && status.f_flag & UInt(ST_RDONLY) != 0 }
}
