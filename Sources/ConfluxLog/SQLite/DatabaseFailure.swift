import CSQLite
import ConfluxSystem

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// An error of SQLite, or of the system below it.
struct DatabaseFailure: Error {
    /// The extended result code.
    let code: Int32
    /// SQLite's error message, or the system's.
    let words: String
    /// Why the system refused something, if it did and said so.
    let trouble: SystemTrouble?

    var primaryCode: Int32 { code & 0xFF }

    init(code: Int32, words: String, trouble: SystemTrouble? = nil) {
        self.code = code
        self.words = words
        self.trouble = trouble
    }

    /// A failure of SQLite.
    ///
    /// - Parameters:
    ///   - code: The extended result code.
    ///   - words: SQLite's error message.
    ///   - number: The system's error number at that moment; 0 if it is not known.
    ///   - path: The file.
    init(code: Int32, words: String, system number: Int32, at path: String) {
        let trouble = SystemTrouble(of: code, system: number, at: path)
        // SQLITE_IOERR_WRITE, a macro that Swift does not import. Only a write that finds no room changes nothing.
        let isFull =
            code == SQLITE_IOERR | 3 << 8 && (trouble == .overQuota || trouble == .fileTooLarge)
        let isExplained = code & 0xFF == SQLITE_IOERR && number != 0
        self.init(
            code: isFull ? SQLITE_FULL : code,
            words: isExplained ? "\(words): \(SystemFailure(number).words)" : words,
            trouble: trouble)
    }

    /// A call of the system that failed, which changed nothing.
    ///
    /// - Parameters:
    ///   - number: The error number.
    ///   - path: The file.
    init(system number: Int32, at path: String) {
        self.init(SystemFailure(number, at: path))
    }

    /// A call of the system that failed, which changed nothing.
    init(_ failure: SystemFailure) {
        let code =
            switch failure.trouble {
            case .noSpace, .noInodes, .overQuota: SQLITE_FULL
            default: SQLITE_CANTOPEN
            }
        self.init(code: code, words: failure.words, trouble: failure.trouble)
    }

    /// Refuses a file that this user may not use. SQLite would not say which file that is. Some it opens for reading
    /// instead, and later takes the database for one that nobody may write.
    static func refuse(_ path: String, for access: Database.Access) throws(DatabaseFailure) {
        guard let failure = SystemFailure(opening: path, for: access.mode) else { return }
        throw DatabaseFailure(
            code: SQLITE_CANTOPEN, words: "\(path): \(failure.words)", trouble: failure.trouble)
    }
}

extension SystemTrouble {
    /// Interprets a failure of SQLite, which reports some of the system's errors as its own.
    fileprivate init?(of code: Int32, system number: Int32, at path: String) {
        switch code & 0xFF {
        case SQLITE_FULL: self = .noSpace
        // SQLite tries again to read a file that it can't create, and has only the second error.
        case SQLITE_CANTOPEN where number == ENOENT && !FileSystem(of: path).hasInodes:
            self = .noInodes
        case SQLITE_CANTOPEN where number == ENOENT && FileSystem(of: path).isReadOnly:
            self = .readOnly
        case SQLITE_CANTOPEN, SQLITE_IOERR, SQLITE_PERM: self.init(number: number, at: path)
        // SQLITE_READONLY_DIRECTORY, a macro that Swift does not import.
        case SQLITE_READONLY where code == SQLITE_READONLY | 6 << 8: self = .notPermitted
        default: return nil
        }
    }
}

extension LogError {
    /// What to do if nothing says why a file can't be read or written.
    private static let unexplained =
        "Look for the reason in the kernel's log, and check the disk and the limits of this process (ulimit -a)."

    /// The log's error for a failure of the database or of a file.
    init(_ failure: DatabaseFailure, _ attempt: String) {
        let (code, advice): (Code, String) =
            switch failure.primaryCode {
            case SQLITE_FULL:
                (
                    .full,
                    failure.trouble?.advice
                        ?? "The log has reached its bound. Keep less of it, or raise the bound."
                )
            case SQLITE_IOERR:
                (
                    .unknownOutcome,
                    "\(failure.trouble?.advice ?? Self.unexplained) Then open the log again and read its end."
                )
            // The statements are valid for an intact log, so the file must be damaged.
            case SQLITE_CORRUPT, SQLITE_ERROR, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG,
                SQLITE_SCHEMA, SQLITE_FORMAT:
                (.damaged, "The database is damaged. Restore it from a backup.")
            case SQLITE_NOTADB:
                (.notALog, "The file is not a database. Choose another folder.")
            case SQLITE_BUSY, SQLITE_LOCKED:
                (
                    .failed,
                    "Another program uses the database. End that program if it is a sequencer, or its transaction, and try again."
                )
            case SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH, SQLITE_READONLY:
                if let trouble = failure.trouble {
                    (trouble.logCode, trouble.advice)
                } else if failure.primaryCode == SQLITE_READONLY {
                    // A wrong byte in its header, which forbids writing.
                    (
                        .damaged,
                        "Its header says that nobody may write it, though this user may: the database is "
                            + "damaged. Restore it from a backup."
                    )
                } else {
                    (.unusableFolder, "Make sure that the folder and its files are there.")
                }
            case SQLITE_NOMEM:
                (.failed, "Free memory; try again.")
            default:
                (.failed, "Nothing was changed.")
            }
        self.init(
            code, "\(attempt) failed: \(failure.words) (SQLite \(failure.code)). \(advice)")
    }
}

extension SystemTrouble {
    /// The kind of failure where nothing was changed.
    var logCode: LogError.Code {
        switch self {
        case .noSpace, .noInodes, .overQuota, .fileTooLarge: .full
        case .tooManyOpenFiles, .tooManyFilesOfSystem, .deviceFailed, .noMemory: .failed
        case .notPermitted, .readOnly, .notAFolder, .isAFolder, .nameTooLong, .linksInCircle:
            .unusableFolder
        }
    }
}
