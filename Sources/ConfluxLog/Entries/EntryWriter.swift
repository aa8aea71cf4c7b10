import CSQLite
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Appends commits to the files of a log's entries.
///
/// *Invariant*: after ``offset`` the last file has only zeros, except while an append is being written. After
/// a failure of the disk, nothing more is appended before the files are opened anew.
final class EntryWriter {
    /// An append that is smaller than this writes zeros ahead, because a write that extends a file takes
    /// longer to sync. A larger one would write everything twice.
    private static let smallBytes = 1 << 15
    private static let aheadBytes = 1 << 20
    private static let pieceBytes = 1 << 16

    let files: EntryFiles
    private let create: (String) throws(DatabaseFailure) -> Void
    /// What the last header ends with, and where that is: if it is something else now, somebody wrote there.
    private var seal: (offset: Int, content: UInt64)?
    /// The size of a new file. It is full at that.
    private let fileBytes: Int
    /// All files, ascending, and how many of their bytes are in use.
    private var used: [(file: EntryFileRecord, bytes: Int)] = []
    /// The last of these files; nil if there is none.
    private var file: DiskFile?
    /// Where the next commit belongs.
    private var offset = 0
    /// Up to where the last file was on disk at the last sync.
    private var durable = 0
    /// Up to where the last file was written. What follows, up to its size, are holes.
    private var extent = 0
    private let piece = UnsafeMutableRawBufferPointer.allocate(
        byteCount: pieceBytes, alignment: 8)

    /// How many bytes of all files are in use.
    private(set) var usedBytes = 0

    /// - Parameters:
    ///   - files: The files.
    ///   - fileBytes: The size of a new file.
    ///   - create: Creates an empty file, whose name is then durable.
    init(
        _ files: EntryFiles, fileBytes: Int,
        create: @escaping (String) throws(DatabaseFailure) -> Void
    ) {
        self.files = files
        self.fileBytes = fileBytes
        self.create = create
    }

    /// Continues behind the end, and removes what a crash left there. What may not be on disk is written
    /// again: after a failed sync, the system may take data for written that it could not write.
    ///
    /// - Parameters:
    ///   - end: Where the entries end; nil if there are none.
    ///   - listed: The files.
    ///   - strays: Unlisted files, which are removed. What can't be removed now is removed later.
    /// - Throws: The disk's failure.
    func resume(
        at end: EntryEnd?, of listed: [EntryFileRecord], removing strays: [SequenceNumber]
    ) throws(DatabaseFailure) {
        for stray in strays { _ = files.remove(stray) }
        used = listed.map { ($0, $0.byteCount) }
        usedBytes = used.reduce(0) { $0 + $1.bytes }
        file = nil
        guard let last = listed.last, let end else { return }
        let file = try files.open(last.first, .write)
        offset = end.offset
        extent = try file.size()
        try rewrite(file, from: end.durable)
        try file.sync()
        durable = offset
        extent = offset
        seal = nil
        use(offset)
        self.file = file
    }

    deinit { piece.deallocate() }

    /// Makes the next file if the last one has no room for an append. It has all of its bytes, as holes, so that
    /// one that becomes shorter is noticed.
    ///
    /// - Parameter commits: The append.
    /// - Returns: The file, to be listed in the database and then used (``begin(_:)``); nil if none is needed.
    /// - Throws: The disk's failure: the last file is still in use.
    func makeFile(
        ifNeededFor commits: [ChainedCommit]
    ) throws(DatabaseFailure) -> EntryFileRecord? {
        let size = Self.size(commits)
        guard !hasRoom(for: commits), let first = commits.first?.commit.first else { return nil }
        // Files that are no longer written are on disk.
        try sync()
        try create(files.path(first))
        let next = try files.open(first, .write)
        let byteCount = max(fileBytes, size)
        try withUnsafeBytes(of: UInt64(0)) { zeros throws(DatabaseFailure) in
            try next.write(zeros, at: byteCount - zeros.count)
        }
        try next.sync()
        return EntryFileRecord(first: first, byteCount: byteCount)
    }

    /// Whether the last file has room for an append.
    func hasRoom(for commits: [ChainedCommit]) -> Bool {
        guard file != nil, let last = used.last else { return false }
        return offset + Self.size(commits) <= last.file.byteCount
    }

    /// Goes on in a file that ``makeFile(ifNeededFor:)`` made, and that the database lists.
    func begin(_ next: EntryFileRecord) throws(DatabaseFailure) {
        file = try files.open(next.first, .write)
        // One that is listed and empty was too small.
        if used.last?.file.first == next.first { usedBytes -= used.removeLast().bytes }
        used.append((next, 0))
        offset = 0
        durable = 0
        extent = 0
        seal = nil
    }

    /// The file to which entries are appended; nil before the first one.
    var newest: (path: String, byteCount: Int)? {
        guard file != nil, let file = used.last?.file else { return nil }
        return (files.path(file.first), file.byteCount)
    }

    /// Whether the last append is still where it was written.
    func endsAsWritten() throws(DatabaseFailure) -> Bool {
        guard let file, let seal else { return true }
        var found: UInt64 = 0
        try withUnsafeMutableBytes(of: &found) { bytes throws(DatabaseFailure) in
            try file.read(into: bytes, at: seal.offset)
        }
        return found == seal.content
    }

    /// Writes commits behind the last one, as one append, into the last file.
    ///
    /// - Throws: `SQLITE_FULL`: nothing was written, or it was removed again. Otherwise, perhaps it was
    ///   written.
    func append(_ commits: [ChainedCommit]) throws(DatabaseFailure) {
        let size = Self.size(commits)
        let written: (Int, UInt64)
        guard let file else { preconditionFailure("an append of \(size) bytes without a file") }
        do throws(DatabaseFailure) {
            written = try write(commits, to: file)
        } catch {
            guard error.primaryCode == SQLITE_FULL else { throw error }
            // What was written must not be taken for entries later.
            do throws(DatabaseFailure) {
                extent = max(extent, offset + size)
                try rewrite(file, from: offset)
            } catch {
                throw DatabaseFailure(
                    code: SQLITE_IOERR, words: error.words, trouble: error.trouble)
            }
            throw error
        }
        use(offset + size)
        seal = written
        if offset > extent {
            extent = offset
            if size < Self.smallBytes { try extend(file) }
        }
    }

    /// Notes how many bytes of the last file are in use.
    private func use(_ bytes: Int) {
        let last = used.count - 1
        usedBytes += bytes - used[last].bytes
        used[last].bytes = bytes
        offset = bytes
    }

    /// How many bytes an append takes.
    static func size(_ commits: [ChainedCommit]) -> Int {
        commits.reduce(0) { $0 + EntryHeader.size($1.commit.bytes.count) }
    }

    /// Waits until everything that was appended is on disk.
    func sync() throws(DatabaseFailure) {
        guard let file, durable < offset else { return }
        try file.sync()
        durable = offset
    }

    /// Removes files whose entries are all below a number. What can't be removed now is removed later.
    func discard(below floor: SequenceNumber) {
        while used.count > 1, used[1].file.first <= floor, files.remove(used[0].file.first) {
            usedBytes -= used.removeFirst().bytes
        }
    }

    /// The highest number to which the floor may rise so that about so many bytes are discarded, and at least
    /// one file.
    func floor(discarding bytes: Int) -> SequenceNumber {
        var sum = 0
        return used.dropLast().first { file in
            defer { sum += file.bytes }
            return sum > 0 && sum + file.bytes > bytes
        }?.file.first ?? .init(.max)
    }

    // MARK: Parts

    /// - Returns: Where the last header's seal is, and the seal.
    private func write(
        _ commits: [ChainedCommit], to file: DiskFile
    ) throws(DatabaseFailure) -> (Int, UInt64) {
        var seal = (0, UInt64(0))
        var filled = 0
        var start = offset
        func flush() throws(DatabaseFailure) {
            try file.write(UnsafeRawBufferPointer(rebasing: piece[..<filled]), at: start)
            start += filled
            filled = 0
        }
        for (index, commit) in commits.enumerated() {
            if filled + EntryHeader.byteCount > piece.count { try flush() }
            let header = UnsafeMutableRawBufferPointer(
                rebasing: piece[filled..<filled + EntryHeader.byteCount])
            EntryHeader.write(
                commit, durable: durable, endsAppend: index == commits.count - 1,
                at: files.place(first, start + filled), into: header)
            let sealOffset = EntryHeader.byteCount - 8
            seal = (
                start + filled + sealOffset,
                header.loadUnaligned(fromByteOffset: sealOffset, as: UInt64.self)
            )
            filled += EntryHeader.byteCount
            let length = commit.commit.bytes.count
            if filled + length > piece.count { try flush() }
            let rest = UnsafeMutableRawBufferPointer(rebasing: piece[filled...])
            if length <= rest.count {
                commit.commit.bytes.withUnsafeBytes { rest.copyMemory(from: $0) }
                filled += length
            } else {
                try commit.commit.bytes.withUnsafeBufferPointer { bytes throws(DatabaseFailure) in
                    try file.write(UnsafeRawBufferPointer(bytes), at: start)
                }
                start += length
            }
            let padding = EntryHeader.size(length) - EntryHeader.byteCount - length
            if filled + padding > piece.count { try flush() }
            UnsafeMutableRawBufferPointer(rebasing: piece[filled..<filled + padding]).zero()
            filled += padding
        }
        try flush()
        return seal
    }

    private var first: SequenceNumber { used.last?.file.first ?? .zero }

    private func extend(_ file: DiskFile) throws(DatabaseFailure) {
        let end = min(extent + Self.aheadBytes, used.last?.file.byteCount ?? 0)
        guard end > extent else { return }
        do throws(DatabaseFailure) {
            piece.zero()
            while extent < end {
                let count = min(piece.count, end - extent)
                try file.write(UnsafeRawBufferPointer(rebasing: piece[..<count]), at: extent)
                extent += count
            }
        } catch {
            // The append itself had room.
            guard error.primaryCode == SQLITE_FULL else { throw error }
        }
    }

    /// Writes the bytes from an offset on again, and zeros after ``offset``.
    private func rewrite(_ file: DiskFile, from start: Int) throws(DatabaseFailure) {
        var place = start
        while place < extent {
            let end = place < offset ? offset : extent
            let part = UnsafeMutableRawBufferPointer(
                rebasing: piece[..<min(piece.count, end - place)])
            try file.read(into: part, at: place)
            if place < offset {
                try file.write(UnsafeRawBufferPointer(part), at: place)
            } else if !UnsafeRawBufferPointer(part).isZero {
                part.zero()
                try file.write(UnsafeRawBufferPointer(part), at: place)
            }
            place += part.count
        }
    }
}

extension UnsafeRawBufferPointer {
    /// Whether all bytes are zero.
    var isZero: Bool {
        guard let base = baseAddress, count > 0 else { return true }
        return self[0] == 0 && memcmp(base, base + 1, count - 1) == 0
    }
}
