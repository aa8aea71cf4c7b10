import ConfluxLog
import ConfluxVocabulary
import Forging
import Foundation
import Testing

/// A small log with rows in each table, as a database and a file of entries, and a folder for copies of it
/// that are damaged.
final class DamageSample {
    static let pageBytes = 16_384

    let folder = TemporaryFolder(isQuick: true)
    /// The database.
    let bytes: [UInt8]
    /// The file of entries, without the holes at its end; its size and its name.
    let entries: [UInt8]
    private let entriesSize: Int
    private let entriesName: String
    private let id: LogID
    private let commits: [LoggedCommit]
    private let snapshots: [SavedSnapshot]
    private let retired: SavedSnapshot
    private let checkpoints: [SavedCheckpoint]
    private let floor: SequenceNumber
    private var last: SequenceNumber { commits[commits.count - 1].last }

    init() throws {
        let origin = TemporaryFolder(isQuick: true)
        var settings = SQLiteLogSettings.small()
        // A file of 256 KiB.
        settings.limitBytes = 4 << 20
        let log = try SQLiteLog(directory: origin.path, settings: settings)
        var commits = try log.fill(8, bytes: 3_000)
        commits += try log.fill(1, bytes: 40_000)
        commits += try log.fill(8, bytes: 3_000)
        retired = .sample(4, bytes: 200)
        let snapshots: [SavedSnapshot] = [
            .sample(10, bytes: 200), .sample(20, bytes: 200),
            .sample(14, of: .sample("one"), life: 3, bytes: 500),
            .sample(18, of: .sample("two"), life: 7, bytes: 100),
            .sample(26, of: .sample("two"), life: 7, bytes: 150, kind: .aside),
            .sample(30, of: .sample("zero"), life: 9, bytes: 0, kind: .compared),
        ]
        for snapshot in snapshots.dropFirst(2) { try log.keep(snapshot, pieceBytes: 200) }
        // This snapshot has only its first piece.
        try log.save(SavedSnapshot.sample(32, of: .sample("half"), bytes: 200).pieces(of: 100)[0])
        // These come last, so that the first one is retired, but not removed yet.
        for number in [4, 10, 20] as [UInt64] {
            try log.keep(.sample(number, bytes: 200), pieceBytes: 90)
        }
        let checkpoints: [SavedCheckpoint] = [.sample(16, bytes: 300), .sample(28, bytes: 900)]
        for checkpoint in checkpoints { try log.save(checkpoint, pieceBytes: 250) }
        while log.floor < SequenceNumber(5) {
            _ = try log.truncate(below: SequenceNumber(5), limitBytes: 1)
        }
        id = log.id
        floor = log.floor
        self.commits = commits.filter { $0.last >= log.floor }
        self.snapshots = snapshots
        self.checkpoints = checkpoints
        log.close()
        // Afterwards the database is one file.
        try origin.run("PRAGMA wal_checkpoint(TRUNCATE)")
        bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: origin.database)))
        let file = URL(filePath: try #require(try origin.forger.paths.first))
        let padded = [UInt8](try Data(contentsOf: file))
        entriesSize = padded.count
        entries = Array(padded.prefix((padded.lastIndex { $0 != 0 } ?? 0) + 1))
        entriesName = file.lastPathComponent
        try FileManager.default.createDirectory(
            atPath: folder.path, withIntermediateDirectories: true)
        try write(bytes)
        let found = read()
        try #require(found.errors.isEmpty && found.problems.isEmpty, "\(found)")
    }

    /// The rows without a checksum of their own: the one in `meta`, and the list of snapshots.
    func rows() throws -> [Range<Int>] {
        let meta = try #require(bytes.firstRange(of: Array(id.description.utf8)))
        let list = bytes.ranges(of: Array("document/".utf8))
        try #require(list.count > snapshots.count)
        return ([meta] + list).map {
            max(0, $0.lowerBound - 16)..<min(bytes.count, $0.upperBound + 40)
        }
    }

    /// Makes these bytes the log's database, with these entries, and without other files beside it.
    ///
    /// - Parameters:
    ///   - bytes: The database.
    ///   - entries: The entries; nil for what they were.
    ///   - isCut: Whether the file of entries ends with them.
    /// - Throws: Errors of the files.
    func write(
        _ bytes: some Sequence<UInt8>, entries: [UInt8]? = nil, isCut: Bool = false
    ) throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            try FileManager.default.removeItem(atPath: "\(folder.path)/\(name)")
        }
        try Data(bytes).write(to: URL(fileURLWithPath: folder.database))
        let content = entries ?? self.entries
        let holes = [UInt8](repeating: 0, count: isCut ? 0 : entriesSize - content.count)
        try Data(content + holes).write(to: URL(filePath: "\(folder.path)/\(entriesName)"))
    }

    // MARK: Reading

    /// The results of reading everything.
    struct Found {
        /// Errors that a log may report for a damaged file.
        var errors: [LogError] = []
        /// Results that it must not have.
        var problems: [String] = []

        mutating func note(_ error: LogError, at place: String) {
            errors.append(error)
            let isTyped = [.damaged, .notALog, .newerFormat].contains(error.code)
            if !isTyped { problems.append("\(place): \(error.code): \(error.message)") }
        }

        mutating func expect(_ isRight: Bool, _ place: @autoclosure () -> String) {
            if !isRight { problems.append("wrong: \(place())") }
        }

        /// Runs a function, and notes its error.
        mutating func attempt<Value>(
            _ place: String, _ body: () throws(LogError) -> Value
        ) -> Value? {
            do throws(LogError) { return try body() } catch {
                note(error, at: place)
                return nil
            }
        }
    }

    /// Reads everything in each possible way.
    func read() -> Found {
        var found = Found()
        if let file = found.attempt(
            "file",
            { () throws(LogError) in
                try SQLiteLogFile(directory: folder.path)
            })
        {
            found.expect(file.id == id, "file's id")
            found.expect(file.epoch == Epoch(3), "file's epoch \(file.epoch)")
            found.expect(file.floor == floor, "file's floor \(file.floor)")
            readAll(Source(file, through: last), into: &found)
            expect(end: file.last, Source(file, through: file.last), into: &found)
            follow(file, into: &found)
            file.close()
        }
        guard
            let log = found.attempt(
                "log",
                { () throws(LogError) in
                    try SQLiteLog(directory: folder.path, settings: .small())
                })
        else { return found }
        defer { log.close() }
        found.expect(log.id == id, "id")
        found.expect(log.floor == floor, "floor \(log.floor)")
        readAll(Source(log), into: &found)
        if let reader = found.attempt("reader", { () throws(LogError) in try log.makeReader() }) {
            readAll(Source(reader, through: last), into: &found)
            reader.close()
        }
        let next = last.next
        guard let claim = found.attempt("claim", { () throws(LogError) in try log.claim() }) else {
            return found
        }
        let right = LogClaim(epoch: Epoch(4), last: last, lastEpoch: Epoch(3))
        found.expect(claim == right, "\(claim)")
        _ = found.attempt("confirm") { () throws(LogError) in try log.confirm() }
        let commit = LoggedCommit.sample(next.rawValue...next.rawValue, epoch: 4)
        _ = found.attempt("append") { () throws(LogError) in
            try log.append(commit)
            let read = try log.read(from: next, limitBytes: .max)
            if read != [commit] { throw LogError(.failed, "it is not what was appended") }
        }
        return found
    }

    /// Follows the chain as far as the commits can be read.
    private func follow(_ file: SQLiteLogFile, into found: inout Found) {
        let read = found.attempt("chain") { () throws(LogError) in
            (
                try file.chain(),
                try file.readChained(from: floor, through: file.last, limitBytes: .max)
            )
        }
        guard let (start, links) = read else { return }
        var chain = start
        for link in links where !chain.follow(link) {
            return found.note(
                LogError(.damaged, "the hash of \(link.commit.first)"), at: "the chain")
        }
    }

    /// Reads from each number separately.
    func readEach() -> Found {
        var found = Found()
        guard
            let file = found.attempt(
                "file", { () throws(LogError) in try SQLiteLogFile(directory: folder.path) })
        else { return found }
        for number in floor.rawValue...last.rawValue {
            let number = SequenceNumber(number)
            let read = found.attempt("commits from \(number)") { () throws(LogError) in
                try file.read(from: number, through: last, limitBytes: 1)
            }
            let right = commits.first { $0.last >= number }
            if let read { found.expect(read.first == right, "commits from \(number)") }
        }
        file.close()
        return found
    }

    /// Expects that the log's end is correct, or that a read there reports the damage.
    private func expect(end: SequenceNumber, _ source: Source, into found: inout Found) {
        guard end != last else { return }
        do throws(LogError) {
            _ = try source.commits(end)
            found.problems.append("wrong: the end \(end)")
        } catch {
            found.note(error, at: "the end \(end)")
        }
    }

    private func readAll(_ source: Source, into found: inout Found) {
        var next = floor
        while next <= last {
            do throws(LogError) {
                let read = try source.commits(next)
                let right = commits.drop { $0.last < next }.prefix(read.count)
                found.expect(
                    !read.isEmpty && read == Array(right),
                    "commits from \(next): \(read.map(\.first))")
                guard let end = read.last?.last, end >= next else { break }
                next = end.next
            } catch {
                found.note(error, at: "commits from \(next)")
                guard let numbers = error.numbers, numbers.contains(next) else {
                    found.problems.append("no place: \(error.message)")
                    break
                }
                next = numbers.upperBound.next
            }
        }
        let listed = found.attempt("list") { () throws(LogError) in try source.snapshots() }
        if let listed { found.expect(listed ?? sorted == sorted, "list \(listed ?? [])") }
        if let list = found.attempt("list", { () throws(LogError) in try source.list() }), let list
        {
            let missing = sorted.filter { !list.intact.contains($0) }
            found.expect(list.intact == sorted.filter { !missing.contains($0) }, "list \(list)")
            found.expect(
                missing.allSatisfy { lost in
                    list.damage.map { $0.stores?.contains(lost.store) ?? true } == true
                },
                "list \(list)")
        }
        for snapshot in snapshots {
            let bytes = found.attempt("\(snapshot.key)") { () throws(LogError) in
                var bytes: [UInt8] = []
                repeat {
                    let more = try source.bytes(snapshot.key, UInt64(bytes.count))
                    guard let more, !more.isEmpty || snapshot.byteCount == 0 else {
                        return nil as [UInt8]?
                    }
                    bytes += more
                } while bytes.count < Int(snapshot.byteCount)
                return bytes
            }
            if let bytes { found.expect(bytes == snapshot.contents, "\(snapshot.key)") }
        }
        let gone = found.attempt("retired") { () throws(LogError) in
            try source.bytes(retired.key, 0)
        }
        if let gone { found.expect(gone == nil, "\(retired.key) is there again") }
        for through in [SequenceNumber(27), last] {
            let read = found.attempt("checkpoint") { () throws(LogError) in
                try source.checkpoint(through)
            }
            // A checkpoint that can't be found is like one that was never saved. The other one is still found.
            if let read, let read {
                found.expect(
                    checkpoints.contains(read) && read.sequence <= through, "a checkpoint")
            }
        }
    }

    private var sorted: [SavedSnapshot] {
        snapshots.sorted { ($0.store, $0.sequence) < ($1.store, $1.sequence) }
    }
}

/// One way to read a log.
private struct Source {
    var commits: (SequenceNumber) throws(LogError) -> [LoggedCommit]
    /// nil if this way has no list.
    var snapshots: () throws(LogError) -> [SavedSnapshot]?
    var list: () throws(LogError) -> SnapshotList? = { () throws(LogError) in nil }
    var bytes: (SavedSnapshot.Key, UInt64) throws(LogError) -> Bytes?
    var checkpoint: (SequenceNumber) throws(LogError) -> SavedCheckpoint?

    private static let limitBytes = 8_000

    init(_ log: SQLiteLog) {
        commits = { number throws(LogError) in
            try log.read(from: number, limitBytes: Self.limitBytes)
        }
        snapshots = { () throws(LogError) in try log.snapshots() }
        list = { () throws(LogError) in try log.snapshotList() }
        bytes = { key, offset throws(LogError) in
            try log.readSnapshot(of: key, from: offset, limitBytes: 300)
        }
        checkpoint = { number throws(LogError) in try log.checkpoint(through: number) }
    }

    init(_ reader: any LogReader, through last: SequenceNumber) {
        commits = { number throws(LogError) in
            try reader.read(from: number, through: last, limitBytes: Self.limitBytes)
        }
        snapshots = { () throws(LogError) in nil }
        bytes = { key, offset throws(LogError) in
            guard try reader.snapshot(of: key) != nil else { return nil }
            return try reader.readSnapshot(of: key, from: offset, limitBytes: 300)
        }
        checkpoint = { number throws(LogError) in try reader.checkpoint(through: number) }
    }

    init(_ file: SQLiteLogFile, through last: SequenceNumber) {
        self.init(file as any LogReader, through: last)
        snapshots = { () throws(LogError) in try file.snapshots() }
    }
}
