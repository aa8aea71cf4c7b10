import CSQLite
import ConfluxSystem
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The files that hold the entries of a log on disk. Each is named after the first number that it holds, and
/// holds what follows, up to the first number of the next file. The database lists them
/// (``SQLiteEntryFiles``).
package struct EntryFiles {
    private static let prefix = "entries-"
    /// Not `.log`: programs that clean up remove such files.
    private static let suffix = ".conflux"
    /// As many as the largest number has, so that the names are in the order of the numbers.
    private static let digits = 19
    /// How much of a file is read at once to find an entry: the first read does if all is well.
    private static let checkedBytes = 4 << 10

    package let folder: String
    /// Protects the headers; see ``EntryHeader``.
    package let salt: UInt64
    /// The SQLite VFS to use; nil for the system's.
    let vfs: String?

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

    /// Reads the database's list of the files, and checks each of them. Everybody who opens a log does this, so
    /// that all call the same logs intact.
    ///
    /// - Parameter list: Reads the database's list.
    /// - Returns: The files.
    /// - Throws: `damaged` if one was lost; `unusableFolder`, `failed`.
    func checked(
        _ list: () throws(DatabaseFailure) -> [EntryFileRecord]
    ) throws(LogError) -> [EntryFileRecord] {
        func listed() throws(LogError) -> [EntryFileRecord] {
            try SQLiteFormat.reading("Listing the entries in \(folder)", list)
        }
        let files = try listed()
        for file in files {
            do throws(LogError) {
                try check(file)
                // Only the newest file may be empty.
                if file != files.last { try checkContent(of: file) }
            } catch {
                // Perhaps its owner has just discarded it.
                if try listed().contains(file) { throw error }
            }
        }
        return files
    }

    /// Checks that a listed file is there, with as many bytes as it was made with.
    private func check(_ file: EntryFileRecord) throws(LogError) {
        let path = path(file.first)
        guard let status = try LogFolder.status(of: path) else {
            throw .lost(path, file, "is missing")
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            let isFolder = status.st_mode & S_IFMT == S_IFDIR
            throw .lost(path, file, isFolder ? "is a folder" : "is not a file")
        }
        guard status.st_size >= file.byteCount else {
            throw .lost(
                path, file, "has \(status.st_size) bytes, and had \(file.byteCount)")
        }
    }

    /// Checks that a file has an entry of this log. It looks further than at the first header only if that is
    /// damaged: what is around a damaged commit is served.
    private func checkContent(of file: EntryFileRecord) throws(LogError) {
        let path = path(file.first)
        let hasEntry = try SQLiteFormat.reading("Reading \(path)") {
            () throws(DatabaseFailure) in
            let window = EntryWindow(
                file.first, of: self, in: try open(file.first, .read), skippingErrors: true,
                windowBytes: Self.checkedBytes)
            if try window.header(from: 0) != nil { return true }
            if let failure = window.failure { throw failure }
            return false
        }
        guard hasEntry else { throw .lost(path, file, "has none of its entries") }
    }

    /// The files in the folder that the database does not list: those that were discarded and could not be
    /// removed, and one in which no entry was written because its owner ended.
    ///
    /// - Parameter list: Reads the database's list.
    /// - Returns: The first numbers in their names.
    /// - Throws: `damaged` if there are entries that the database does not know.
    func strays(
        unlike list: () throws(DatabaseFailure) -> [EntryFileRecord]
    ) throws(LogError) -> [SequenceNumber] {
        let attempt = "Listing the entries in \(folder)"
        let (listed, strays) = try SQLiteFormat.reading(attempt) { () throws(DatabaseFailure) in
            let listed = try list().map(\.first)
            let known = Set(listed)
            return (listed, try firsts().filter { !known.contains($0) })
        }
        for stray in strays where stray > (listed.first ?? .zero) {
            let isForeign = try SQLiteFormat.reading(attempt) { () throws(DatabaseFailure) in
                guard try isWritten(stray) else { return false }
                // An owner lists a file before it writes an entry there.
                return try !list().contains { $0.first == stray }
            }
            if isForeign { throw .unlisted(path(stray), in: folder) }
        }
        return strays
    }

    /// Whether a file has any byte but zeros.
    private func isWritten(_ first: SequenceNumber) throws(DatabaseFailure) -> Bool {
        guard let file = try openIfThere(first) else { return false }
        let size = try file.size()
        let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
        defer { piece.deallocate() }
        for start in stride(from: 0, to: size, by: piece.count) {
            try file.read(into: piece, at: start)
            if !UnsafeRawBufferPointer(piece).isZero { return true }
        }
        return false
    }

    /// Opens a file for reading; nil if there is none.
    func openIfThere(_ first: SequenceNumber) throws(DatabaseFailure) -> DiskFile? {
        guard access(path(first), F_OK) == 0 || errno != ENOENT else { return nil }
        do throws(DatabaseFailure) { return try open(first, .read) } catch {
            // Perhaps its owner has just removed it.
            if access(path(first), F_OK) != 0, errno == ENOENT { return nil }
            throw error
        }
    }

    /// The first numbers of all files in the folder, ascending.
    func firsts() throws(DatabaseFailure) -> [SequenceNumber] {
        let names: [String]
        do throws(SystemFailure) {
            names = try Folder.names(in: folder)
        } catch {
            throw DatabaseFailure(error)
        }
        return names.compactMap(first).sorted()
    }

    /// The first number in the name of a file; nil for another file's name.
    private func first(_ name: String) -> SequenceNumber? {
        guard name.hasPrefix(Self.prefix), name.hasSuffix(Self.suffix),
            let number = UInt64(name.dropFirst(Self.prefix.count).dropLast(Self.suffix.count)),
            number > 0, path(SequenceNumber(number)) == "\(folder)/\(name)"
        else { return nil }
        return SequenceNumber(number)
    }
}

extension LogError {
    /// A file of entries is gone, or a part of it.
    fileprivate static func lost(
        _ path: String, _ file: EntryFileRecord, _ what: String
    ) -> LogError {
        LogError(
            .damaged,
            "\(path), which holds the entries from \(file.first) on, \(what). Put the file back, or "
                + "restore the log from a backup.", numbers: file.first...file.first)
    }

    fileprivate static func unlisted(_ path: String, in folder: String) -> LogError {
        LogError(
            .damaged,
            "\(path) has entries that the database in \(folder) does not know: the database is older than the "
                + "entries, or the file belongs to another log. Restore all files of a backup together."
        )
    }
}
