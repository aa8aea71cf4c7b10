/// Why the system refuses to open, read or write a file, where its error number says so, and what to do about it.
///
/// This is the only place that gives such advice. Whatever else an error number means, its own words say best.
package enum SystemTrouble: Sendable, Hashable, CaseIterable {
    /// The file system is full.
    case noSpace
    /// The file system has room, but no inode for another file.
    case noInodes
    /// The user has used up what the user may take.
    case overQuota
    /// The process has as many files open as it may have.
    case tooManyOpenFiles
    /// All processes together have as many files open as the system can have.
    case tooManyFilesOfSystem
    /// The user lacks a right.
    case notPermitted
    /// The file system does not accept writes.
    case readOnly
    /// The device failed.
    case deviceFailed

    // The same on Linux and on macOS, but for the quota.
    private static let quotas: [Int32] = [69, 122]

    /// Interprets an error number; nil if it means something else.
    ///
    /// - Parameters:
    ///   - number: The error number (`errno`).
    ///   - hasInodes: Whether the file system has an inode left. The system reports one error for both.
    package init?(number: Int32, hasInodes: Bool) {
        switch number {
        case 28: self = hasInodes ? .noSpace : .noInodes
        case _ where Self.quotas.contains(number): self = .overQuota
        case 24: self = .tooManyOpenFiles
        case 23: self = .tooManyFilesOfSystem
        case 1, 13: self = .notPermitted
        case 30: self = .readOnly
        case 5: self = .deviceFailed
        default: return nil
        }
    }

    /// What to do.
    package var advice: String {
        switch self {
        case .noSpace: "The disk is full. Make room."
        case .noInodes:
            "The disk has room, but no inode left for another file. Remove files that nobody needs."
        case .overQuota:
            "This user's quota on the disk is used up. Raise it, or remove files of this user."
        case .tooManyOpenFiles:
            "This process has as many files open as it may. Raise that limit (ulimit -n, or LimitNOFILE in a "
                + "unit), and start it again."
        case .tooManyFilesOfSystem:
            "The system has as many files open as it can. Raise fs.file-max, or end programs with many open "
                + "files."
        case .notPermitted:
            "This user may not do that. Give the user the right to read and write the folder and its files."
        case .readOnly:
            "The file system is mounted read-only. Mount it for writing. If you did not mount it so, look for "
                + "errors of the disk in the kernel's log."
        case .deviceFailed:
            "The disk reported an error. Look for it in the kernel's log, and check the disk."
        }
    }
}
