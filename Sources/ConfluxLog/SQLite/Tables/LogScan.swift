import CSQLite
import ConfluxVocabulary

/// One read of a log in a former format, which has a row for each commit. It walks the rows from the one that contains a number, and stops at the limit,
/// at the end, or at a row that is damaged or missing.
struct LogScan {
    private var from: SequenceNumber
    private let last: SequenceNumber
    private let limitBytes: Int

    /// The commits that were read, intact, in order and without gaps.
    private var commits: [ChainedCommit] = []
    /// The number that the next row must begin with.
    private var next: SequenceNumber

    /// Reads intact commits, in order, from the one that contains a number.
    ///
    /// - Throws: `damaged` if the first of them can't be read. The error's numbers contain `from`, and end
    ///   before the next row that the database still finds, so that a reader can continue there.
    static func read(
        _ statements: SQLiteRowStatements, from: SequenceNumber, through last: SequenceNumber,
        limitBytes: Int
    ) throws(LogError) -> [ChainedCommit] {
        var scan = LogScan(from: from, last: last, limitBytes: limitBytes, next: from)
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
        guard let fault, scan.commits.isEmpty else { return scan.commits }
        let end = statements.endOfDamage(at: max(scan.next, from), through: last)
        throw .damaged(scan.next, end, fault)
    }

    /// - Returns: The fault at which it stopped; nil at the limit or the end.
    private mutating func run(
        _ statements: SQLiteRowStatements
    ) throws(DatabaseFailure) -> String? {
        statements.start.bind(Int64(from.rawValue), at: 1)
        // Until this reset, both statements see the log as it is at one moment, so no truncation comes between them.
        defer { statements.start.reset() }
        _ = try statements.start.step()
        let start = statements.start.integer(0)
        from = max(from, SequenceNumber(UInt64(max(0, statements.start.integer(1)))))
        // A page with rows out of order may return an earlier row.
        next = SequenceNumber(UInt64(max(0, start)))
        if next == .zero || next > from { next = from }
        let rows = statements.read
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
            // A commit that ends before `from` only shows that something after it is missing.
            if commit.last >= from {
                commits.append(ChainedCommit(commit: commit, hash: SQLiteLogRow.hash(rows)))
            }
            next = commit.last.next
        }
        return nil
    }
}

extension SQLiteRowStatements {
    /// The last number of the damage that was met at a number: the one before the next row that the database
    /// finds. If a page is lost, the search probes at growing distances, then bisects between the last two
    /// probes: some dozen probes, however long the log is.
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
        // The row after `low` can be read; the one after `bad` perhaps not.
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
            // A page with rows out of order may return an earlier row.
            guard let found = UInt64(exactly: following.integer(0)), found > number else {
                return .unreadable
            }
            return .row(found)
        } catch {
            return .unreadable
        }
    }
}
