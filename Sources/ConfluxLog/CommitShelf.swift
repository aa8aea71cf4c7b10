import ConfluxVocabulary

/// The commits of a log in memory.
struct CommitShelf {
    /// How many bytes a commit counts towards the bound besides its own.
    static let overheadBytes = MemoryLayout<LoggedCommit>.stride + 32

    private var stored: [LoggedCommit] = []
    /// Where the commits begin in `stored`. *Invariant*: those before it are discarded and have no bytes, and
    /// there are no more of them than of those after it.
    private var start = 0
    /// Like `ActionLog.floor`.
    private(set) var floor = SequenceNumber(1)
    /// How many bytes the commits count, including the overhead.
    private(set) var keptBytes = 0

    var newest: LoggedCommit? { stored.last }
    var last: SequenceNumber { stored.last?.last ?? .zero }

    mutating func append(_ commit: LoggedCommit) {
        stored.append(commit.copy)
        keptBytes += Self.cost(of: commit)
    }

    func read(from: SequenceNumber, limitBytes: Int) -> [LoggedCommit] {
        let low = stored[start...].partitioningIndex { $0.last >= from }
        var end = low
        var total = 0
        while end < stored.count {
            total += stored[end].bytes.count
            if end > low && total > limitBytes { break }
            end += 1
        }
        return Array(stored[low..<end])
    }

    /// Like `ActionLog.truncate(below:limitBytes:)`.
    ///
    /// - Returns: Whether it is done.
    mutating func truncate(below floor: SequenceNumber, limitBytes: Int) -> Bool {
        var given = 0
        while start + 1 < stored.count, stored[start].last < floor {
            if given > 0, given >= limitBytes { return false }
            let commit = stored[start]
            given += Self.cost(of: commit)
            keptBytes -= Self.cost(of: commit)
            // Its slot is removed later, together with others.
            stored[start] = LoggedCommit(
                first: commit.first, last: commit.last, epoch: commit.epoch, bytes: [])
            start += 1
            self.floor = commit.last.next
            if start > stored.count / 2 {
                stored.removeFirst(start)
                start = 0
            }
        }
        return true
    }

    static func cost(of commit: LoggedCommit) -> Int { commit.bytes.count + overheadBytes }
}
