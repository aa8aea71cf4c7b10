import CSQLite
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The files that hold the entries of a log on disk. Each is named after the first number that it holds, and
/// holds what follows, up to the first number of the next file.
package struct EntryFiles {
    private static let prefix = "entries-"
    private static let suffix = ".log"
    /// As many as the largest number has, so that the names are in the order of the numbers.
    private static let digits = 19

    package let folder: String
    /// Protects the headers; see ``EntryHeader``.
    package let salt: UInt64
    /// The SQLite VFS to use; nil for the system's.
    let vfs: String?

    package init(folder: String, salt: UInt64, vfs: String?) {
        self.folder = folder
        self.salt = salt
        self.vfs = vfs
    }

    package func path(_ first: SequenceNumber) -> String {
        let number = String(first.rawValue)
        let zeros = String(repeating: "0", count: max(0, Self.digits - number.utf8.count))
        return "\(folder)/\(Self.prefix)\(zeros)\(number)\(Self.suffix)"
    }

    package func place(_ file: SequenceNumber, _ offset: Int) -> EntryPlace {
        EntryPlace(salt: salt, file: file, offset: offset)
    }

    func open(_ first: SequenceNumber, _ access: Database.Access) throws(DatabaseFailure)
        -> DiskFile
    {
        try DiskFile(path: path(first), vfs: vfs, access: access)
    }

    /// Removes a file.
    ///
    /// - Returns: Whether it is gone.
    func remove(_ first: SequenceNumber) -> Bool {
        guard let system = sqlite3_vfs_find(vfs) else { return false }
        // SQLITE_IOERR_DELETE_NOENT, a macro that Swift does not import.
        let isAbsent = SQLITE_IOERR | 23 << 8
        return [SQLITE_OK, isAbsent].contains(system.pointee.xDelete(system, path(first), 0))
    }

    /// The first numbers of all files, ascending.
    func firsts() throws(DatabaseFailure) -> [SequenceNumber] {
        guard let directory = opendir(folder) else {
            throw DatabaseFailure(
                code: SQLITE_CANTOPEN, words: String(shownCString: strerror(errno)))
        }
        defer { closedir(directory) }
        var firsts: [SequenceNumber] = []
        while let entry = readdir(directory) {
            let text = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { try? String(utf8CString: $0) }
            }
            guard let name = text, name.hasPrefix(Self.prefix), name.hasSuffix(Self.suffix),
                let number = UInt64(
                    name.dropFirst(Self.prefix.count).dropLast(Self.suffix.count)),
                number > 0, path(SequenceNumber(number)) == "\(folder)/\(name)"
            else { continue }
            firsts.append(SequenceNumber(number))
        }
        return firsts.sorted()
    }
}
