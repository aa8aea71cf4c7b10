import CSQLite
import ConfluxVocabulary

extension EntryFiles {
    private static let pieceBytes = 1 << 20

    /// Copies the entries from a number on, durably, even if their owner appends meanwhile.
    ///
    /// - Parameters:
    ///   - floor: The lowest number that must be in the copy.
    ///   - target: The folder of the copy.
    /// - Returns: Whether all files were still there. If not, the copy is incomplete.
    /// - Throws: `full`, `failed`, `unusableFolder`.
    func copy(from floor: SequenceNumber, to target: LogFolder) throws(LogError) -> Bool {
        let copies = EntryFiles(folder: target.path, salt: salt, vfs: nil)
        let attempt = "Copying the entries to \(target.path)"
        let firsts = try SQLiteFormat.reading(attempt) { () throws(DatabaseFailure) in
            try self.firsts()
        }
        guard firsts.first ?? floor <= floor else { return false }
        for first in firsts {
            // Only its owner may read the copy, whatever the umask is.
            try target.makeFile(copies.path(first))
            let isThere = try SQLiteFormat.reading(attempt) {
                () throws(DatabaseFailure) -> Bool in
                guard let source = try opened(first) else { return false }
                // Behind the end, the owner may be writing.
                let bytes =
                    first == firsts.last
                    ? try EntryEnd.find(in: EntryWindow(first, of: self)).offset
                    : try source.size()
                try Self.copy(bytes, of: source, to: copies.open(first, .write))
                return true
            }
            guard isThere else { return false }
        }
        return true
    }

    /// A file; nil if there is none.
    private func opened(_ first: SequenceNumber) throws(DatabaseFailure) -> DiskFile? {
        do throws(DatabaseFailure) { return try open(first, .read) } catch {
            if error.primaryCode == SQLITE_CANTOPEN, try !firsts().contains(first) { return nil }
            throw error
        }
    }

    private static func copy(
        _ count: Int, of source: DiskFile, to target: DiskFile
    ) throws(DatabaseFailure) {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: pieceBytes, alignment: 8)
        defer { memory.deallocate() }
        for start in stride(from: 0, to: count, by: pieceBytes) {
            let piece = UnsafeMutableRawBufferPointer(
                rebasing: memory[..<min(pieceBytes, count - start)])
            try source.read(into: piece, at: start)
            try target.write(UnsafeRawBufferPointer(piece), at: start)
        }
        try target.sync()
    }
}
