import ConfluxVocabulary

/// Moves the commits of a log in a former format, which are rows of its database, into files.
enum EntryUpgrade {
    /// How many bytes of commits to move at once.
    private static let pieceBytes = 1 << 20

    /// Writes all commits into files, durably. The database stays as it is, and so does the log, until the
    /// format in its database changes.
    ///
    /// - Parameters:
    ///   - rows: The commits.
    ///   - floor: The lowest number of the log.
    ///   - last: Where the log ends.
    ///   - entries: Takes them.
    /// - Throws: `damaged` if a commit is; `full`, `failed`.
    static func move(
        _ rows: SQLiteRowStatements, from floor: SequenceNumber, through last: SequenceNumber,
        into entries: EntryWriter
    ) throws(LogError) {
        var next = floor
        while next <= last {
            let commits = try rows.read(from: next, through: last, limitBytes: pieceBytes)
            try SQLiteFormat.reading("Moving the entries from \(next) on into files") {
                () throws(DatabaseFailure) in try entries.append(commits)
            }
            next = commits.last?.commit.last.next ?? last.next
        }
        try SQLiteFormat.reading("Moving the entries into files") {
            () throws(DatabaseFailure) in try entries.sync()
        }
    }
}
