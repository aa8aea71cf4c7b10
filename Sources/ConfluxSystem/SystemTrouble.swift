#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Why the system refuses to open, read or write a file, where its error number says so, and what to do about it.
///
/// This is the only place that gives such advice. Whatever else an error number means, ``SystemFailure`` has the
/// system's words for it.
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
    /// A part of the path, which must be a folder, is something else.
    case notAFolder
    /// The path, which must be a file's, is a folder's.
    case isAFolder
    /// The path, or a name in it, is too long.
    case nameTooLong
    /// Symbolic links in the path lead back to themselves.
    case linksInCircle
    /// The file is as large as it may be.
    case fileTooLarge
    /// The system has no memory left.
    case noMemory

    /// Interprets an error number; nil if it means something else.
    ///
    /// - Parameters:
    ///   - number: The error number (`errno`).
    ///   - hasInodes: Whether the file system has an inode left. The system reports one error for both.
    package init?(number: Int32, hasInodes: Bool) {
        switch number {
        case ENOSPC: self = hasInodes ? .noSpace : .noInodes
        case EDQUOT: self = .overQuota
        case EMFILE: self = .tooManyOpenFiles
        case ENFILE: self = .tooManyFilesOfSystem
        case EPERM, EACCES: self = .notPermitted
        case EROFS: self = .readOnly
        case EIO: self = .deviceFailed
        case ENOTDIR: self = .notAFolder
        case EISDIR: self = .isAFolder
        case ENAMETOOLONG: self = .nameTooLong
        case ELOOP: self = .linksInCircle
        case EFBIG: self = .fileTooLarge
        case ENOMEM: self = .noMemory
        default: return nil
        }
    }

    /// Interprets an error number; nil if it means something else.
    ///
    /// - Parameters:
    ///   - number: The error number (`errno`).
    ///   - path: The file.
    package init?(number: Int32, at path: String) {
        self.init(number: number, hasInodes: number != ENOSPC || FileSystem(of: path).hasInodes)
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
            "This user may not do that. Give the user the rights to the file and to the folders of its path."
        case .readOnly:
            "The file system is mounted read-only. Mount it for writing. If you did not mount it so, look for "
                + "errors of the disk in the kernel's log."
        case .deviceFailed:
            "The disk reported an error. Look for it in the kernel's log, and check the disk."
        case .notAFolder:
            "A part of the path is a file, and must be a folder. Correct the path, or move that file away."
        case .isAFolder: "It is a folder. Give the path of a file."
        case .nameTooLong:
            "The path, or a name in it, is longer than the system allows. Shorten it."
        case .linksInCircle: "Symbolic links in the path form a circle. Correct one of them."
        case .fileTooLarge:
            "The file is as large as it may be. Raise the limit (ulimit -f), or choose a file system that "
                + "allows larger files."
        case .noMemory: "The system has no memory left. End other programs, or add memory."
        }
    }
}
