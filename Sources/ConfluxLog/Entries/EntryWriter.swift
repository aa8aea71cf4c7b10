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
    private let makeFile: (String) throws(LogError) -> Void
    /// The size at which a file is full.
    private let fileBytes: Int
    /// All files, ascending, and how many of their bytes are in use.
    private var sizes: [(first: SequenceNumber, bytes: Int)] = []
    /// The last of these files; nil if there is none.
    private var file: DiskFile?
    /// Where the next commit belongs.
    private var offset = 0
    /// Up to where the last file was on disk at the last sync.
    private var durable = 0
    /// The size of the last file.
    private var extent = 0
    private let piece = UnsafeMutableRawBufferPointer.allocate(
        byteCount: pieceBytes, alignment: 8)

    /// How many bytes of all files are in use.
    private(set) var usedBytes = 0

    /// - Parameters:
    ///   - files: The files.
    ///   - fileBytes: The size at which a file is full.
    ///   - makeFile: Creates an empty file.
    init(
        _ files: EntryFiles, fileBytes: Int, makeFile: @escaping (String) throws(LogError) -> Void
    ) {
        self.files = files
        self.fileBytes = fileBytes
        self.makeFile = makeFile
    }

    /// Continues behind the end, and removes what a crash left there. What may not be on disk is written
    /// again: after a failed sync, the system may take data for written that it could not write.
    ///
    /// - Parameter end: Where the entries end; nil if there are none.
    /// - Throws: The disk's failure.
    func resume(at end: EntryEnd?) throws(DatabaseFailure) {
        sizes = []
        for first in try files.firsts() {
            sizes.append((first, try files.open(first, .read).size()))
        }
        usedBytes = sizes.reduce(0) { $0 + $1.bytes }
        file = nil
        guard let last = sizes.last, let end else { return }
        let file = try files.open(last.first, .write)
        offset = end.offset
        extent = last.bytes
        try rewrite(file, from: end.durable)
        try file.sync()
        durable = offset
        usedBytes += offset - last.bytes
        sizes[sizes.count - 1].bytes = offset
        self.file = file
    }

    deinit { piece.deallocate() }

    /// Writes commits behind the last one, as one append.
    ///
    /// - Throws: `SQLITE_FULL`: nothing was written, or it was removed again. Otherwise, perhaps it was
    ///   written.
    func append(_ commits: [ChainedCommit]) throws(DatabaseFailure) {
        let size = Self.size(commits)
        guard let first = commits.first?.commit.first else { return }
        let file: DiskFile
        if let current = self.file, offset == 0 || offset + size <= fileBytes {
            file = current
        } else {
            file = try begin(first)
        }
        do throws(DatabaseFailure) {
            try write(commits, to: file)
        } catch {
            guard error.primaryCode == SQLITE_FULL else { throw error }
            // What was written must not be taken for entries later.
            do throws(DatabaseFailure) {
                extent = try file.size()
                try rewrite(file, from: offset)
            } catch {
                throw DatabaseFailure(code: SQLITE_IOERR, words: error.words)
            }
            throw error
        }
        offset += size
        usedBytes += size
        sizes[sizes.count - 1].bytes = offset
        if offset > extent {
            extent = offset
            if size < Self.smallBytes { try extend(file) }
        }
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
        while sizes.count > 1, sizes[1].first <= floor, files.remove(sizes[0].first) {
            usedBytes -= sizes.removeFirst().bytes
        }
    }

    /// The highest number to which the floor may rise so that about so many bytes are discarded, and at least
    /// one file.
    func floor(discarding bytes: Int) -> SequenceNumber {
        var sum = 0
        return sizes.dropLast().first { file in
            defer { sum += file.bytes }
            return sum > 0 && sum + file.bytes > bytes
        }?.first ?? .init(.max)
    }

    // MARK: Parts

    private func begin(_ first: SequenceNumber) throws(DatabaseFailure) -> DiskFile {
        // Files that are no longer written are on disk.
        try sync()
        do throws(LogError) { try makeFile(files.path(first)) } catch {
            throw DatabaseFailure(code: SQLITE_CANTOPEN, words: error.message)
        }
        let next = try files.open(first, .write)
        sizes.append((first, 0))
        file = next
        offset = 0
        durable = 0
        extent = 0
        return next
    }

    private func write(_ commits: [ChainedCommit], to file: DiskFile) throws(DatabaseFailure) {
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
    }

    private var first: SequenceNumber { sizes.last?.first ?? .zero }

    private func extend(_ file: DiskFile) throws(DatabaseFailure) {
        let end = min(extent + Self.aheadBytes, fileBytes)
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
