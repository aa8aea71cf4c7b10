import ConfluxVocabulary

/// One read of a log on disk: walks rows from the one that contains a number, and stops at the
/// limit, at the end, or at what is damaged or missing.
struct LogScan {
    private var from: SequenceNumber
    private let last: SequenceNumber
    private let limitBytes: Int

    /// What is whole, in order and without holes.
    private(set) var commits: [LoggedCommit] = []
    /// Why the scan stopped, if not at the limit or the end.
    var damage: LogError?
    /// The number that the next row must begin with.
    private(set) var next: SequenceNumber

    init(from: SequenceNumber, through last: SequenceNumber, limitBytes: Int) {
        self.from = from
        self.last = last
        self.limitBytes = limitBytes
        next = from
    }

    mutating func run(_ statements: SQLiteReadStatements) throws(DatabaseFailure) {
        statements.start.bind(Int64(from.rawValue), at: 1)
        // Until then both statements see the log as it is at one moment: nobody truncates it between
        // them.
        defer { statements.start.reset() }
        _ = try statements.start.step()
        let start = statements.start.integer(0)
        from = max(from, SequenceNumber(UInt64(max(0, statements.start.integer(1)))))
        next = start > 0 ? SequenceNumber(UInt64(start)) : from
        statements.read.bind(start, at: 1)
        defer { statements.read.reset() }
        var total = 0
        while next <= last {
            guard try statements.read.step() else {
                damage = .damaged(next, last, "missing")
                return
            }
            let row = SQLiteLogRow(statements.read)
            total += row.bytes.count
            if !commits.isEmpty && total > limitBytes { return }
            guard row.first == next else {
                damage =
                    row.first > next
                    ? .damaged(next, SequenceNumber(row.first.rawValue - 1), "missing")
                    : .damaged(row.first, row.first, "overlaps those before it")
                return
            }
            do {
                let commit = try row.commit()
                // One that ends before `from` shows only that something is missing behind it.
                if commit.last >= from { commits.append(commit) }
                next = commit.last.next
            } catch {
                damage = error
                return
            }
        }
    }
}
