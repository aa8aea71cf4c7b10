import CSQLite
import ConfluxVocabulary

/// Reads one file of entries. It keeps the bytes that it read last, so that small commits don't each need a
/// call to the system.
final class EntryWindow {
    let first: SequenceNumber
    private let files: EntryFiles
    private let file: DiskFile
    private let memory: UnsafeMutableRawBufferPointer
    /// Whether to take what the disk can't read for zeros.
    private let skipsErrors: Bool
    /// Reuses the memory of large commits.
    private let pool: BufferPool
    /// Why the disk could not read something.
    private(set) var failure: DatabaseFailure?
    /// The offsets of the bytes in `memory`.
    private var held = 0..<0

    /// - Parameters:
    ///   - first: The first number of the file.
    ///   - files: The files of the log.
    ///   - file: The file.
    ///   - skipsErrors: Whether to take what the disk can't read for zeros.
    ///   - windowBytes: How many bytes to read at once.
    ///   - pool: Reuses the memory of large commits.
    init(
        _ first: SequenceNumber, of files: EntryFiles, in file: DiskFile,
        skippingErrors skipsErrors: Bool, windowBytes: Int = 1 << 16,
        pool: BufferPool = BufferPool()
    ) {
        memory = .allocate(byteCount: windowBytes, alignment: 8)
        self.first = first
        self.pool = pool
        self.skipsErrors = skipsErrors
        self.files = files
        self.file = file
    }

    convenience init(_ first: SequenceNumber, of files: EntryFiles) throws(DatabaseFailure) {
        self.init(
            first, of: files, in: try files.open(first, .read), skippingErrors: false)
    }

    deinit { memory.deallocate() }

    func size() throws(DatabaseFailure) -> Int { try file.size() }

    /// Forgets what it read: the file may have grown since.
    func renew() {
        held = 0..<0
        failure = nil
    }

    /// The header at an offset; nil if there is none.
    func header(at offset: Int) throws(DatabaseFailure) -> EntryHeader? {
        EntryHeader(try bytes(at: offset, EntryHeader.byteCount), at: files.place(first, offset))
    }

    /// The next header at an offset or after it; nil if there is none.
    func header(
        from offset: Int
    ) throws(DatabaseFailure) -> (offset: Int, header: EntryHeader)? {
        let size = try size()
        var offset = (offset + 7) & ~7
        while offset + EntryHeader.byteCount <= size {
            if let header = try header(at: offset) { return (offset, header) }
            offset += 8
            // Most of what is searched are zeros, at which no header begins.
            if held.upperBound - offset > EntryHeader.byteCount, isZero(from: offset) {
                offset = (held.upperBound - EntryHeader.byteCount + 8) & ~7
            }
        }
        return nil
    }

    private func isZero(from offset: Int) -> Bool {
        let rest = UnsafeRawBufferPointer(rebasing: memory[(offset - held.lowerBound)..<held.count])
        return rest.isZero
    }

    /// The commit behind a header, with its hash; nil if its bytes are not what was written.
    func commit(_ header: EntryHeader, at offset: Int) throws(DatabaseFailure) -> ChainedCommit? {
        let hash = header.hash(in: try bytes(at: offset, EntryHeader.byteCount))
        let start = offset + EntryHeader.byteCount
        guard header.length <= LoggedCommit.bytesMax else { return nil }
        let contents = try contents(header.length, at: start)
        let commit = LoggedCommit(
            first: header.first, last: header.last, epoch: header.epoch, bytes: contents[...])
        return Checksum.of(commit) == header.checksum
            ? ChainedCommit(commit: commit, hash: hash) : nil
    }

    /// The bytes of a commit.
    private func contents(_ count: Int, at start: Int) throws(DatabaseFailure) -> [UInt8] {
        if count <= memory.count { return Array(try bytes(at: start, count)) }
        var contents = pool.take(byteCount: count)
        contents.reserveCapacity(count)
        _ = try contents.append(atMost: count) { memory throws(DatabaseFailure) in
            try read(into: memory, at: start)
            return count
        }
        pool.keep(contents)
        return contents
    }

    /// Bytes of the file, valid until the next call.
    private func bytes(
        at offset: Int, _ count: Int
    ) throws(DatabaseFailure) -> UnsafeRawBufferPointer {
        if offset < held.lowerBound || offset + count > held.upperBound {
            held = 0..<0
            try read(into: memory, at: offset)
            held = offset..<offset + memory.count
        }
        let start = offset - held.lowerBound
        return UnsafeRawBufferPointer(rebasing: memory[start..<start + count])
    }

    private func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int
    ) throws(DatabaseFailure) {
        do throws(DatabaseFailure) { try file.read(into: buffer, at: offset) } catch {
            guard skipsErrors, error.primaryCode == SQLITE_IOERR else { throw error }
            failure = error
            buffer.zero()
        }
    }
}
