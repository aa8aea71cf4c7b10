import CSQLite
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A file beside the database, read and written through SQLite's layer for the system, the VFS. So the same
/// tests make both fail, and both reach the disk by the same calls, on each system.
///
/// One thread at a time owns it.
final class DiskFile {
    /// SQLite's files accept less than 128 KiB at once.
    private static let callBytes = 124 << 10

    private let file: UnsafeMutablePointer<sqlite3_file>
    private let methods: sqlite3_io_methods
    private let path: String
    /// SQLite reads the name as long as the file is open.
    private let name: UnsafeMutablePointer<CChar>

    /// Opens a file that exists.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - vfs: The name of the VFS to use; nil for the system's.
    ///   - access: What may be done with it.
    /// - Throws: SQLite's failure to open it.
    init(path: String, vfs: String?, access: Database.Access) throws(DatabaseFailure) {
        try DatabaseFailure.refuse(path, for: access)
        guard let system = sqlite3_vfs_find(vfs), let name = strdup(path) else {
            throw DatabaseFailure(code: SQLITE_CANTOPEN, words: "SQLite has no VFS for \(path)")
        }
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: Int(system.pointee.szOsFile), alignment: 16)
        let file = memory.assumingMemoryBound(to: sqlite3_file.self)
        file.pointee.pMethods = nil
        var granted: Int32 = 0
        let code = system.pointee.xOpen(
            system, name, file, access.flags & ~SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL, &granted)
        let number = errno
        guard code == SQLITE_OK, let methods = file.pointee.pMethods?.pointee else {
            memory.deallocate()
            free(name)
            throw Self.failure(code == SQLITE_OK ? SQLITE_CANTOPEN : code, number, path)
        }
        self.path = path
        self.file = file
        self.methods = methods
        self.name = name
        // A file that can't be written is opened for reading instead.
        if access == .write, granted & SQLITE_OPEN_READWRITE == 0 {
            throw DatabaseFailure(system: EACCES, at: path)
        }
    }

    deinit {
        _ = methods.xClose(file)
        UnsafeMutableRawPointer(file).deallocate()
        free(name)
    }

    /// The file's size in bytes.
    func size() throws(DatabaseFailure) -> Int {
        var size: Int64 = 0
        try check(methods.xFileSize(file, &size))
        return Int(size)
    }

    /// Fills a buffer with the bytes from an offset on. After the file's end there are zeros.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(DatabaseFailure) {
        var done = 0
        while done < buffer.count {
            let count = min(Self.callBytes, buffer.count - done)
            let code = methods.xRead(
                file, buffer.baseAddress?.advanced(by: done), Int32(count), Int64(offset + done))
            // SQLITE_IOERR_SHORT_READ, a macro that Swift does not import: the rest was set to zeros.
            if code != SQLITE_IOERR | 2 << 8 { try check(code) }
            done += count
        }
    }

    /// Writes bytes at an offset.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(DatabaseFailure) {
        var done = 0
        while done < bytes.count {
            let count = min(Self.callBytes, bytes.count - done)
            try check(
                methods.xWrite(
                    file, bytes.baseAddress?.advanced(by: done), Int32(count), Int64(offset + done))
            )
            done += count
        }
    }

    /// Waits until everything that was written is on disk.
    func sync() throws(DatabaseFailure) {
        try check(methods.xSync(file, SQLITE_SYNC_FULL | SQLITE_SYNC_DATAONLY))
    }

    private func check(_ code: Int32) throws(DatabaseFailure) {
        guard code != SQLITE_OK else { return }
        throw Self.failure(code, file.lastSystemNumber, path)
    }

    private static func failure(
        _ code: Int32, _ number: Int32, _ path: String
    ) -> DatabaseFailure {
        DatabaseFailure(
            code: code, words: String(shownCString: sqlite3_errstr(code)), system: number, at: path)
    }
}
