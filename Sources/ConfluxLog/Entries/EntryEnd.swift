import CSQLite
import ConfluxVocabulary

/// Where the entries of a log end.
///
/// A crash may leave a part of the newest appends: any of their bytes, in any order. An append counts if all
/// of its commits are intact, and so are all appends before it that were not on disk when it was written.
/// What was on disk counts even if it is damaged now.
struct EntryEnd {
    /// The last number; nil if the last commit is so damaged that nothing says its number.
    let last: SequenceNumber?
    /// Where the next commit belongs in the last file.
    let offset: Int
    /// Where the part of the last file begins that perhaps is not on disk.
    let durable: Int

    /// Finds the end in the last file.
    ///
    /// - Parameter window: The last file.
    /// - Returns: The end.
    /// - Throws: The disk's failure.
    static func find(in window: EntryWindow) throws(DatabaseFailure) -> EntryEnd {
        var durable = 0
        var ends: [Int: SequenceNumber] = [0: SequenceNumber(window.first.rawValue - 1)]
        var next = try window.header(from: 0)
        while let (offset, header) = next {
            if header.durable > durable {
                durable = header.durable
                // Only the others can be where the durable part ends.
                ends = ends.filter { $0.key >= durable }
            }
            ends[offset + header.size] = header.last
            next = try window.header(from: offset + header.size)
        }
        var end = EntryEnd(last: ends[durable], offset: durable, durable: durable)
        var offset = durable
        while let header = try window.header(at: offset),
            try window.commit(header, at: offset) != nil
        {
            offset += header.size
            if header.endsAppend {
                end = EntryEnd(last: header.last, offset: offset, durable: durable)
            }
        }
        return end
    }
}
