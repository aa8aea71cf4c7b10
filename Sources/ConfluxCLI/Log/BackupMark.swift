import ConfluxSystem

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A file in a log's folder that says by its time of change when the log was last backed up.
///
/// The command that makes a backup leaves it, so that the sequencer, another process, can report the time as a metric.
/// It is no part of the log: whoever copies or moves a log does not need it.
enum BackupMark {
    private static func path(in folder: String) -> String { folder + "/backed-up" }

    /// Notes that the log in a folder has a complete, checked backup now.
    ///
    /// - Parameter folder: The log's folder.
    /// - Throws: `SystemFailure` if the file can't be made.
    static func leave(in folder: String) throws(SystemFailure) {
        let path = path(in: folder)
        let descriptor = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, mode_t(0o600))
        guard descriptor >= 0 else { throw SystemFailure(errno, at: path) }
        defer { close(descriptor) }
        guard futimens(descriptor, nil) == 0 else { throw SystemFailure(errno, at: path) }
    }

    /// When the log in a folder was last backed up, in seconds since 1970 UTC.
    ///
    /// - Parameter folder: The log's folder.
    /// - Returns: The time; nil if nobody has made a backup of it.
    static func seconds(in folder: String) -> Double? {
        var status = stat()
        guard lstat(path(in: folder), &status) == 0 else { return nil }
        #if canImport(Darwin)
            return Double(status.st_mtimespec.tv_sec)
        #else
            return Double(status.st_mtim.tv_sec)
        #endif
    }
}
