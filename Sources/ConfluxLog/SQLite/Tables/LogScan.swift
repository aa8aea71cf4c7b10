import CSQLite
import ConfluxVocabulary

/// One read of a log on disk: walks rows from the one that contains a number, and stops at the
/// limit, at the end, or at what is damaged or missing.
struct LogScan {
    private var from: SequenceNumber
    private let last: SequenceNumber
    private let limitBytes: Int
    private let isChained: Bool

    /// What is whole, in order and without holes.
    private var commits: [LoggedCommit] = []
    /// Their hashes, if these are wanted.
    private var hashes: [ChainHash?] = []
    /// The number that the next row must begin with.
    private var next: SequenceNumber

    /// Reads commits, whole and in order, from the one that contains a number.
    ///
    /// - Throws: `damaged` where the first of them can't be read. Its numbers contain `from` and end
    ///   before the next row that the database still finds, so that a reader can continue there.
    static func read(
        _ statements: SQLiteReadStatements, from: SequenceNumber, through last: SequenceNumber,
        limitBytes: Int
    ) throws(LogError) -> [LoggedCommit] {
        try scan(statements, from, last, limitBytes, isChained: false).commits
    }

    /// The same, with hashes.
    static func readChained(
        _ statements: SQLiteReadStatements, from: SequenceNumber, through last: SequenceNumber,
        limitBytes: Int
    ) throws(LogError) -> [ChainedCommit] {
        let scan = try scan(statements, from, last, limitBytes, isChained: true)
        return zip(scan.commits, scan.hashes).map { ChainedCommit(commit: $0, hash: $1) }
    }

    private static func scan(
        _ statements: SQLiteReadStatements, _ from: SequenceNumber, _ last: SequenceNumber,
        _ limitBytes: Int, isChained: Bool
    ) throws(LogError) -> LogScan {
        var scan = LogScan(
            from: from, last: last, limitBytes: limitBytes, isChained: isChained, next: from)
        let fault: String?
        do throws(DatabaseFailure) {
            fault = try scan.run(statements)
        } catch {
            let attempt = "Reading the log from entry \(scan.next)"
            guard error.primaryCode == SQLITE_CORRUPT || error.primaryCode == SQLITE_IOERR else {
                throw SQLiteFormat.readError(error, attempt)
            }
            fault = "the database says \"\(error.words)\" there"
        }
        guard let fault, scan.commits.isEmpty else { return scan }
        let end = statements.endOfDamage(at: max(scan.next, from), through: last)
        throw .damaged(scan.next, end, fault)
    }

    /// - Returns: What is wrong with what it stopped at; nil at the limit or the end.
    private mutating func run(
        _ statements: SQLiteReadStatements
    ) throws(DatabaseFailure) -> String? {
        statements.start.bind(Int64(from.rawValue), at: 1)
        // Until then both statements see the log as it is at one moment: nobody truncates it between
        // them.
        defer { statements.start.reset() }
        _ = try statements.start.step()
        let start = statements.start.integer(0)
        from = max(from, SequenceNumber(UInt64(max(0, statements.start.integer(1)))))
        // A page whose rows are out of order may give one that is behind.
        next = SequenceNumber(UInt64(max(0, start)))
        if next == .zero || next > from { next = from }
        let rows = isChained ? statements.readChained : statements.read
        rows.bind(Int64(next.rawValue), at: 1)
        defer { rows.reset() }
        var total = 0
        while next <= last {
            guard try rows.step() else { return "missing" }
            let row = SQLiteLogRow(rows)
            total += row.bytes.count
            if !commits.isEmpty && total > limitBytes { return nil }
            guard row.first == next else { return "missing" }
            guard let commit = row.commit() else {
                return "its bytes are not those that were written"
            }
            // One that ends before `from` shows only that something is missing behind it.
            if commit.last >= from {
                commits.append(commit)
                if isChained { hashes.append(SQLiteLogRow.hash(rows)) }
            }
            next = commit.last.next
        }
        return nil
    }
}

extension SQLiteReadStatements {
    /// The last number of damage that was met at a number: the one before the next row that the
    /// database finds. Where a page is gone it is looked for at growing distances, then between the
    /// last two: some dozen looks, however long the log is.
    fileprivate func endOfDamage(
        at number: SequenceNumber, through last: SequenceNumber
    ) -> SequenceNumber {
        let damaged = number.rawValue
        let most = max(damaged, last.rawValue)
        var low = damaged
        var step: UInt64 = 1
        var found = row(behind: low)
        while case .unreadable = found, low < most {
            low = min(most, low + step)
            step *= 2
            found = row(behind: low)
        }
        guard case .row(var first) = found else { return SequenceNumber(most) }
        // What is behind `low` can be read; what is behind `damaged` perhaps not.
        var bad = damaged
        while bad + 1 < low {
            let middle = bad + (low - bad) / 2
            switch row(behind: middle) {
            case .row(let nearer):
                first = nearer
                low = middle
            case .none, .unreadable: bad = middle
            }
        }
        return SequenceNumber(min(most, first - 1))
    }

    private enum Neighbour {
        case row(UInt64)
        case none
        case unreadable
    }

    private func row(behind number: UInt64) -> Neighbour {
        following.bind(Int64(clamping: number), at: 1)
        defer { following.reset() }
        do throws(DatabaseFailure) {
            guard try following.step() else { return .none }
            // A page whose rows are out of order may give one that is before.
            guard let found = UInt64(exactly: following.integer(0)), found > number else {
                return .unreadable
            }
            return .row(found)
        } catch {
            return .unreadable
        }
    }
}
