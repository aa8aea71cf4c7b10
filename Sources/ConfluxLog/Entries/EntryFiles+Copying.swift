extension EntryFiles {
    private static let pieceBytes = 1 << 20

    /// Copies files of entries, durably, even if their owner appends meanwhile.
    ///
    /// - Parameters:
    ///   - listed: The files.
    ///   - target: The folder of the copy.
    /// - Returns: The copies; nil if the owner has discarded a file meanwhile.
    /// - Throws: `full`, `failed`, `unusableFolder`.
    func copy(
        _ listed: [EntryFileRecord], to target: LogFolder
    ) throws(LogError) -> [EntryFileRecord]? {
        let copies = EntryFiles(folder: target.path, salt: salt, vfs: nil)
        let attempt = "Copying the entries to \(target.path)"
        var made: [EntryFileRecord] = []
        for file in listed {
            // Only its owner may read the copy, whatever the umask is.
            try target.makeFile(copies.path(file.first))
            let byteCount = try SQLiteFormat.reading(attempt) {
                () throws(DatabaseFailure) -> Int? in
                guard let source = try openIfThere(file.first) else { return nil }
                // Behind the end, the owner may be writing.
                let bytes =
                    file == listed.last
                    ? try EntryEnd.find(in: EntryWindow(file.first, of: self)).offset
                    : try source.size()
                try Self.copy(bytes, of: source, to: copies.open(file.first, .write))
                return bytes
            }
            guard let byteCount else { return nil }
            made.append(EntryFileRecord(first: file.first, byteCount: byteCount))
        }
        return made
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
